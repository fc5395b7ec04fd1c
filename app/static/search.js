// The first tab: a question, the texts that are nearest to it, and a map of all texts.

import { report } from "./attempt.js";
import { background } from "./background.js";
import { collection, csv } from "./collection.js";
import { byId, counted, element } from "./dom.js";
import { duplicates } from "./duplicates.js";
import { QUESTIONS, SUPPORT } from "./examples.js";
import { address, remember, typed } from "./link.js";
import { pointMap } from "./map.js";
import { evidenceOfMatch, judgeBy, relations } from "./matches.js";
import { matrix } from "./matrix.js";
import { noted } from "./notes.js";
import { readVectors } from "./reading.js";
import { embed } from "./requests.js";
import { button as action, copying, requests, save } from "./results.js";
import { term } from "./terms.js";

const SHOWN = 10; // results
const IDLE = 350; // milliseconds after the last key until matches are explained
const MATRIX = 150; // texts whose similarities are drawn
const LINKED = 4000; // characters of texts that a link can hold
const LONG = 150; // characters from which on a text may have to be scrolled
const CELLS = 3; // other cells of a result's row that are shown, such as the answer to a question
const FAR = 0.3; // cosine below which a text has hardly anything to do with the question

const query = byId("query");
const linked = byId("texts"); // the user's texts, as a link holds them; empty: the example
const EXAMPLE = { name: "the example", texts: SUPPORT, columns: ["text"], column: 0, rows: SUPPORT.map((text) => [text]) };

let current = EXAMPLE; // the collection: {name, texts, columns, column, rows}
let loaded = null; // {collection, model, ready, stop}: the collection whose vectors the worker has, or is getting
let layout = null; // {points, assigned, words} of the collection
let cluster = null; // the cluster whose texts alone are listed
let vector = null; // of the question that is answered; null: none is
let settling = new AbortController();

const status = element("p", { className: "timing" });
status.setAttribute("role", "status");
const progress = element("progress", { max: 1, value: 0 });
progress.setAttribute("aria-label", "Texts read");
const title = element("h2", { textContent: "Closest in meaning" });
const results = element("ol", { className: "results" });
const legend = element("div", { className: "clusters" });
legend.setAttribute("role", "group");
legend.setAttribute("aria-label", "Groups");
const groups = element("p", { className: "key", textContent: "These are groups of like texts: tap one to see it alone.", hidden: true });
const map = pointMap((index) => like(current.texts[index]));
const back = element("span"); // to the question before a text was asked for
const close = duplicates();
const [square, more] = [element("div"), element("div")];
const matrixBox = element("details", { className: "wide" }, element("summary", { textContent: "Similarity of every two texts" }), square);
const view = element(
  "div", {},
  element("div", { className: "finding" },
    element("section", { className: "list" }, element("div", { className: "row" }, title, term("closest"), back), status, progress, results),
    element("section", {}, element("div", { className: "row" }, element("h2", { textContent: "Map of all texts" }), term("map")), map.box, legend, groups)),
  close.box, matrixBox, more,
);

let following = false; // a link, whose question stays

const use = collection(byId("search-collection"), "search", (texts) => {
  take(texts);
  if (!following) {
    if (QUESTIONS.includes(query.value)) query.value = ""; // of the example
    query.focus();
  }
  run();
}, (failure) => report("search", failure));

// `texts` become the collection that is searched.
function take(texts) {
  loaded?.stop.abort(); // what is still read of the collection before
  current = texts;
  const lines = texts.texts.join("\n");
  linked.value = current !== EXAMPLE && texts.columns.length === 1 && lines.length <= LINKED ? lines : "";
  cluster = null;
  const offers = current === EXAMPLE ? ["Try: ", ...QUESTIONS.map((text) => action(text, () => fill(text)))] : [action("Back to the example", showExample)];
  byId("search-tries").replaceChildren(...offers);
}

function showExample() {
  use.describe(`Example: ${SUPPORT.length} questions to a shop`);
  take(EXAMPLE);
  fill(QUESTIONS[0]);
}
use.describe(`Example: ${SUPPORT.length} questions to a shop`);
take(EXAMPLE);

function fill(text) {
  query.value = text;
  back.replaceChildren();
  run();
}

// Asks what is like a text of the collection; the question before is a button's press away.
function like(text) {
  const before = query.value.trim();
  fill(text);
  if (before && before !== text) back.replaceChildren(action(`Back to “${before.length > 30 ? `${before.slice(0, 29)}…` : before}”`, () => fill(before)));
}

const holds = (model) => loaded?.collection === current && loaded.model === model && !loaded.stop.signal.aborted;

// Reads the texts in batches, unless this model has read them.
function keep(model) {
  if (holds(model)) return loaded.ready;
  loaded?.stop.abort();
  const stop = new AbortController();
  const { texts } = current;
  layout = null;
  loaded = { collection: current, model, stop };
  view.classList.add("old");
  more.replaceChildren(); // a link to what was found before, and a file of it
  close.show(texts, null);
  loaded.ready = read(texts, model, stop.signal).catch((failure) => {
    if (loaded?.stop === stop) {
      loaded = null;
      results.replaceChildren(); // of the texts before
      close.box.hidden = matrixBox.hidden = true;
      status.textContent = "";
    }
    throw failure;
  });
  return loaded.ready;
}

async function read(texts, model, signal) {
  const started = performance.now();
  progress.value = 0;
  progress.style.visibility = "visible";
  const { vectors, size, notes } = await readVectors(texts, model, signal, (done) => {
    progress.value = done / texts.length;
    status.textContent = `${done.toLocaleString("en")} of ${counted(texts.length, "text")} read …`;
  });
  layout = await background("keep", { texts, vectors, size });
  progress.style.visibility = "hidden";
  map.show(texts, layout);
  drawLegend();
  square.replaceChildren();
  drawMatrix();
  background("duplicates").then((pairs) => signal.aborted || close.show(texts, pairs));
  close.box.hidden = matrixBox.hidden = texts.length < 2;
  return { seconds: (performance.now() - started) / 1000, notes };
}

const named = (i) => layout.words[i].join(", ");

function drawLegend() {
  const counts = d3.rollup([...layout.assigned], (rows) => rows.length, (index) => index);
  const items = layout.words.map((words, i) => {
    const swatch = element("i");
    swatch.style.background = `var(--cluster-${i})`;
    const button = element("button", { type: "button" }, swatch, `${named(i)} `, element("small", { textContent: counts.get(i) ?? 0 }));
    button.setAttribute("aria-pressed", false);
    button.addEventListener("click", () => {
      cluster = cluster === i ? null : i;
      for (const other of legend.children) other.setAttribute("aria-pressed", other === button && cluster === i);
      map.light(null, cluster);
      run();
    });
    return button;
  });
  legend.replaceChildren(...(counts.size > 1 ? items : []).filter((_, i) => counts.has(i)));
  groups.hidden = counts.size < 2;
}

// Answers what is typed. While one question is on its way the newest one waits, and those between are passed over.
let [running, again] = [null, false];
export function run() {
  settling.abort();
  again = Boolean(running);
  running ??= answer().catch((failure) => {
    view.classList.add("old");
    report("search", failure);
  }).finally(() => {
    running = null;
    if (again) run();
  });
  return running;
}

async function answer() {
  const place = byId("answer-search");
  if (!view.isConnected) place.replaceChildren(view);
  report("search", null);
  const model = byId("model-search").value;
  const text = query.value.trim();
  const { texts } = current;
  const reading = !(holds(model) && layout);
  const { seconds, notes: unread } = await keep(model);
  if (texts !== current.texts) return;
  const started = performance.now();
  const most = cluster === null ? SHOWN : texts.length;
  let hits = texts.map((_, i) => [i, null]);
  const all = counted(texts.length, "text");
  const times = reading ? [`${all} read in ${seconds.toFixed(1)} s.`] : [];
  const notes = [unread && `${noted(unread)}${unread.foreign ? " The list marks such texts." : ""}`];
  vector = null;
  if (text) {
    const { vectors, timing, notes: about } = await embed([text], model);
    const nearest = await background("ask", { query: vectors, most });
    [hits, vector] = [nearest.hits, vectors];
    map.ask(nearest.point, hits);
    const total = timing.find(([stage]) => stage === "total")?.[1] ?? 0;
    times.unshift(`Answered in ${(performance.now() - started).toFixed(0)} ms, of which ${total.toFixed(1)} to read the question, ${nearest.took.toFixed(1)} to compare it with ${all}.`);
    if (about) notes[0] = noted(about);
    else if (hits[0][1] < FAR) notes.push(`Nothing here is close to the question: the best is ${hits[0][1].toFixed(2)} alike.`);
  } else {
    map.ask(null, []);
    times.push(`${reading ? "" : `${all}. `}Type a question to rank them.`);
  }
  if (others.has(model)) notes.push(others.get(model));
  if (cluster !== null) hits = hits.filter(([i]) => layout.assigned[i] === cluster);
  const shown = hits.slice(0, cluster === null ? SHOWN : 50);
  const what = text ? "Closest in meaning" : shown.length < hits.length ? `The first ${shown.length} texts` : "All texts";
  title.textContent = cluster === null ? what : `${text ? "Closest" : what} in the group “${named(cluster)}”`;
  status.textContent = times.join(" ");
  draw(shown, notes.filter(Boolean));
  settle(text, model, shown, unread?.foreign);
}

function draw(hits, notes) {
  const items = hits.map(([i, cosine]) => {
    const text = element("button", { type: "button", className: "text", textContent: current.texts[i], dir: "auto" });
    text.title = "Show what is like this text";
    text.classList.toggle("long", current.texts[i].length > LONG);
    text.addEventListener("click", () => like(current.texts[i]));
    text.addEventListener("focus", () => map.light(i, cluster));
    const swatch = element("i");
    swatch.style.background = `var(--cluster-${layout.assigned[i]})`;
    const meta = element("p", { className: "meta" }, swatch, cosine === null ? "" : `${cosine.toFixed(2)} alike`);
    const item = element("li", {}, text, ...cells(i), meta);
    item.addEventListener("pointerenter", () => map.light(i, cluster));
    item.addEventListener("pointerleave", () => map.light(null, cluster));
    return item;
  });
  results.replaceChildren(...items);
  view.classList.remove("old");
  for (const note of notes) status.append(" ", element("span", { className: "refused", textContent: note }));
}

// The first other cells of the text's row; the end of a long one is a press away.
function cells(i) {
  const filled = current.columns.map((name, c) => [name, current.rows[i][c], c]).filter(([, cell, c]) => cell && c !== current.column);
  return filled.slice(0, CELLS).map(([name, cell]) => {
    const heading = element("b", { textContent: name });
    if (cell.length <= 2 * LONG) return element("p", { className: "cell", dir: "auto" }, heading, ` ${cell}`);
    return element("details", { className: "cell", dir: "auto" }, element("summary", {}, heading, ` ${cell.slice(0, LONG)}…`), `…${cell.slice(LONG)}`);
  });
}

// When nothing is typed for a while: which words made the matches, which say the same or the opposite, and the address.
function settle(text, model, hits, foreign) {
  settling = new AbortController();
  const { signal } = settling;
  setTimeout(async () => {
    if (signal.aborted) return;
    const question = typed("search");
    const link = address(question, null);
    if (!byId("panel-search").hidden) remember("search", link);
    const complete = current === EXAMPLE || linked.value;
    const [button, note] = copying(link, complete ? "link" : "link (of the question, without the texts)");
    more.replaceChildren(
      element("div", { className: "actions" }, button, action("Save CSV", saveAll), note),
      requests("embed", { inputs: text ? [text] : current.texts.slice(0, 2), model, long: "mean" }),
    );
    const near = hits.slice(0, SHOWN).filter(([, cosine]) => cosine >= FAR);
    const texts = near.map(([i]) => current.texts[i]);
    try {
      await Promise.all([
        foreign ? markForeign(hits.slice(0, SHOWN), model, signal) : null,
        relations(text, near.map(([i, cosine]) => [current.texts[i], cosine]), signal).then((remarks) => remarks.forEach((remark, i) => remark && results.children[i].querySelector(".meta").append(" · ", remark))),
        evidenceOfMatch(texts, near, vector, model, signal).then((marked) => marked.forEach((parts, i) => mark(results.children[i].querySelector(".text"), parts))),
      ]);
    } catch (failure) {
      if (failure.name !== "AbortError") report("search", failure);
    }
  }, IDLE);
}

// The service counts the texts of a request that do not look like English: each is sent alone.
async function markForeign(hits, model, signal) {
  const answers = await Promise.all(hits.map(([i]) => embed([current.texts[i]], model, signal)));
  for (const [i, { notes }] of answers.entries()) {
    if (notes?.foreign) results.children[i].querySelector(".meta").append(" · ", element("span", { className: "refused", textContent: "not English?" }));
  }
}

// The parts of a text in place of it; a long text is scrolled to what is marked.
function mark(text, parts) {
  text.replaceChildren(...parts);
  const first = text.querySelector("mark");
  if (first && first.offsetTop + first.offsetHeight > text.clientHeight) text.scrollTop = first.offsetTop - first.offsetHeight;
}

async function saveAll() {
  const { texts, rows, columns } = current;
  const all = vector ? (await background("ask", { query: vector, most: texts.length })).hits : texts.map((_, i) => [i, null]);
  const words = (i) => layout.words[layout.assigned[i]].join(" ");
  save(csv([[...columns, "similarity", "group"], ...all.map(([i, cosine]) => [...rows[i], cosine?.toFixed(4) ?? "", words(i)])]), "search.csv");
}

async function drawMatrix() {
  if (!matrixBox.open || square.hasChildNodes() || !layout) return;
  const question = query.value.trim();
  const near = question && current.texts.length > MATRIX;
  let rows = d3.range(Math.min(MATRIX, current.texts.length));
  if (near) {
    const { vectors } = await embed([question], loaded.model);
    rows = (await background("ask", { query: vectors, most: MATRIX })).hits.map(([i]) => i);
  }
  rows = d3.sort(rows, (i) => layout.assigned[i]); // texts of a cluster stand together
  const cosines = await background("matrix", { rows });
  const name = `How alike every two of ${counted(rows.length, "text")} are${near ? ", of those closest to the question" : ""}`;
  square.replaceChildren(matrix(rows.map((i) => current.texts[i]), cosines, name));
}
matrixBox.addEventListener("toggle", drawMatrix);

let others = new Map(); // what is said of models that did not learn to search
const searches = ({ kind }) => kind === "embedding";
const about = ({ name, kind }) => `${name} learned to ${kind === "classification" ? "label" : "compare"}, not to search: the order may mean little.`;

let shownTexts = "";
export const search = {
  task: "embed",
  fits: () => true, // every model has vectors
  options(known, defaults) {
    judgeBy(defaults.nli);
    const options = known.map((card) => ({ value: card.name, text: card.name, group: searches(card) ? "Learned to search" : "Learned other work: finds less" }));
    others = new Map(known.filter((card) => !searches(card)).map((card) => [card.name, about(card)]));
    return d3.sort(options, ({ value }) => others.has(value));
  },
  about: (card) => others.get(card.name) ?? "",
  // Texts of a link come first.
  async ask() {
    if (linked.value && linked.value !== current.texts.join("\n") && linked.value !== shownTexts) {
      shownTexts = linked.value;
      use.field.value = linked.value;
      following = true;
      await use.read("your lines", linked.value);
      following = false;
    }
    await run();
  },
};

query.addEventListener("input", () => {
  back.replaceChildren();
  if (loaded) run();
});
