// What a file or a pasted list holds: {columns, rows}, the rows as lists of cells.

import "./vendor/d3.min.js";


export const MOST_ROWS = 2000;

const NAMES = /^(text|sentence|question|title|message|body|content|comment|review|input|query|description)s?$/i;

// Raises an Error that says what is wrong with the file.
export function readTexts(name, content) {
  const kind = name.toLowerCase().split(".").pop();
  const read = { csv: readCsv, jsonl: readJsonl, ndjson: readJsonl, txt: readLines }[kind];
  if (!read) throw new Error(`${name} is no .txt, .csv or .jsonl file: save it as one of these.`);
  const { columns, rows } = read(content.replace(/^\ufeff/, ""));
  const filled = rows.map((row) => row.map(cleaned)).filter((row) => row.some(Boolean));
  if (!filled.length) throw new Error(`${name} holds no text.`);
  return { columns, rows: filled.slice(0, MOST_ROWS), total: filled.length, column: likely(columns, filled) };
}

// What the service refuses in a text: NUL, and half of a character of two code units.
const cleaned = (cell) => String(cell ?? "").replaceAll("\0", "").toWellFormed().trim();

export function readLines(content) {
  return { columns: ["text"], rows: content.split(/\r?\n/).map((line) => [line]) };
}

// The first row names the columns, unless there is but one column whose first cell is no such name.
function readCsv(content) {
  const [first] = content.split("\n", 1);
  const separator = globalThis.d3.greatest([",", ";", "\t"], (mark) => first.split(mark).length);
  const rows = globalThis.d3.dsvFormat(separator).parseRows(content);
  const [head = []] = rows;
  if (head.length === 1 && !NAMES.test(head[0].trim())) return { columns: ["text"], rows };
  return { columns: head.map((column, i) => column.trim() || `column ${i + 1}`), rows: rows.slice(1) };
}

function readJsonl(content) {
  const objects = content.split(/\r?\n/).flatMap((line, i) => {
    if (!line.trim()) return [];
    try {
      const value = JSON.parse(line);
      return [typeof value === "string" ? { text: value } : value];
    } catch {
      throw new Error(`Line ${i + 1} is no JSON: each line holds an object, {"text": "..."}, or a string.`);
    }
  });
  const columns = [...new Set(objects.slice(0, 100).flatMap(Object.keys))];
  const cell = (value) => (typeof value === "object" && value !== null ? JSON.stringify(value) : value);
  return { columns, rows: objects.map((object) => columns.map((column) => cell(object[column]))) };
}

// The column of texts: the one that is called so, or else the one with the longest cells.
function likely(columns, rows) {
  const named = columns.findIndex((column) => NAMES.test(column));
  if (named >= 0) return named;
  const lengths = columns.map((_, i) => rows.slice(0, 200).reduce((sum, row) => sum + (row[i] ?? "").length, 0));
  return lengths.indexOf(Math.max(...lengths));
}

// Words that stand in one cluster's texts more often than in the others', the three most telling of each; words that stand in
// one text only where there are no others; the beginning of its first text where no word sets it apart.
export function clusterWords(texts, assigned, count) {
  const inCluster = Array.from({ length: count }, () => new Map());
  const everywhere = new Map();
  texts.forEach((text, i) => {
    for (const word of new Set(text.toLowerCase().match(/\p{L}{3,}/gu))) {
      inCluster[assigned[i]].set(word, (inCluster[assigned[i]].get(word) ?? 0) + 1);
      everywhere.set(word, (everywhere.get(word) ?? 0) + 1);
    }
  });
  const sizes = Array.from({ length: count }, (_, cluster) => assigned.filter((other) => other === cluster).length);
  return inCluster.map((words, cluster) => {
    const apart = ([word, times]) => times / sizes[cluster] > (MORE * everywhere.get(word)) / texts.length;
    const telling = [...words].filter((word) => !COMMON.has(word[0]) && apart(word)).map(([word, times]) => [word, (times * times) / everywhere.get(word), times]);
    const repeated = telling.filter(([, , times]) => times > 1);
    const best = (repeated.length ? repeated : telling).sort((a, b) => b[1] - a[1]).slice(0, 3).map(([word]) => word);
    return best.length ? best : [`like “${[...(texts[assigned.indexOf(cluster)] ?? "")].slice(0, 24).join("")}…”`];
  });
}

const MORE = 1.3; // times as often as in all texts
const COMMON = new Set(`the and for are but not you all any can had her was one our out has him his how its who did yes she may too use that with have this will your from
they know want been good much some time very when come here just like long make many more only over such take than them well were what where which while why does don
doesn isn into about after again also then there their these those would could should because being before between both each few off once own same under until
please get got`.split(/\s+/));
