// The service's headers about the texts, in the page's words.

const FOREIGN = /^(\d+) of (\d+) inputs .*: (\S+) was trained on English/;

// {texts, foreign, model, cut}: how many texts do not look like English, to which model, and how many were cut; null: no remarks.
export function notesOf({ headers }) {
  const [, foreign = 0, texts = 0, model = ""] = headers.get("X-Warning")?.match(FOREIGN) ?? [];
  const cut = Number(headers.get("X-Truncated"));
  return Number(foreign) || cut ? { foreign: Number(foreign), texts: Number(texts), model, cut } : null;
}

// The notes of two answers as those of one; `count` is the number of texts of both.
export function joined(before, now, count) {
  if (!before && !now) return null;
  const [a, b] = [before ?? { foreign: 0, model: "", cut: 0 }, now ?? { foreign: 0, model: "", cut: 0 }];
  return { foreign: a.foreign + b.foreign, texts: count, model: a.model || b.model, cut: a.cut + b.cut };
}

export function noted({ foreign, texts, model, cut }) {
  const remarks = [];
  const reads = `the only language that ${model} reads, or most of ${texts === 1 ? "its" : "their"} words are new to it: do not rely on the ${texts === 1 || foreign === 1 ? "answer" : "answers"}.`;
  if (foreign) remarks.push(`${texts === 1 ? "This does" : `${foreign} of ${texts.toLocaleString("en")} texts ${foreign === 1 ? "does" : "do"}`} not look like English, ${reads}`);
  if (cut) remarks.push(cut === 1 ? "1 text is longer than the model reads: only its beginning was read." : `${cut} texts are longer than the model reads: only their beginnings were read.`);
  return remarks.join(" ");
}
