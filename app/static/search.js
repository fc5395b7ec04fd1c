// The first tab: a question, the texts that are nearest to it, and a map of all texts.

import { report } from "./attempt.js";
import { background } from "./background.js";
import { collection, csv } from "./collection.js";
import { byId, element } from "./dom.js";
import { duplicates } from "./duplicates.js";
import { QUESTIONS, SUPPORT } from "./examples.js";
import { address, remember, typed } from "./link.js";
import { pointMap } from "./map.js";
import { evidenceOfMatch, relations } from "./matches.js";
import { matrix } from "./matrix.js";
import { readVectors } from "./reading.js";
import { embed } from "./requests.js";
import { button as action, copying, requests, save } from "./results.js";
import { term } from "./terms.js";

const SHOWN = 10; // results
const IDLE = 350; // milliseconds after the last key until matches are explained
const MATRIX = 150; // texts whose similarities are drawn
const LINKED = 4000; // characters of texts that a link can hold

const count = (number) => number.toLocaleString("en");

const query = byId("query");
const linked = byId("texts"); // the user's texts, as a link holds them; empty: the example
const EXAMPLE = { name: "the example", texts: SUPPORT, columns: ["text"], rows: SUPPORT.map((text) => [text]) };

let given = EXAMPLE; // the collection, as it was given
let kept = null; // {given, model, ready}: the collection whose vectors the worker has, or is getting
let layout = null; // {points, assigned, words} of the collection
let cluster = null; // the cluster whose texts alone are listed
let vector = null; // of the question that is answered; null: none is
let settling = new AbortController();

const status = element("p", { className: "timing" });
status.setAttribute("role", "status");
const progress = element("progress", { max: 1, value: 0 });
progress.setAttribute("aria-label", "Texts read");
const results = element("ol", { className: "results" });
const legend = element("div", { className: "clusters" });
legend.setAttribute("role", "group");
legend.setAttribute("aria-label", "Clusters");
const map = pointMap((index) => fill(given.texts[index]));
const close = duplicates();
const [square, more] = [element("div"), element("div")];
const matrixBox = element("details", { className: "wide" }, element("summary", { textContent: "Similarity of every two texts" }), square);
const view = element(
  "div", {},
  element("div", { className: "finding" },
    element("section", { className: "list" }, element("h2", { textContent: "Closest in meaning" }), status, progress, results),
    element("section", {}, element("div", { className: "row" }, element("h2", { textContent: "Map of all texts" }), term("map")), map.box, legend)),
  close.box, matrixBox, more,
);

const use = collection(byId("search-collection"), "search", (texts) => {
  given = texts;
  const lines = texts.texts.join("\n");
  linked.value = texts.columns.length === 1 && lines.length <= LINKED ? lines : "";
  cluster = null;
  run();
}, (failure) => report("search", failure));
use.describe(`${SUPPORT.length} questions to a shop, as an example`);

byId("search-tries").append(...QUESTIONS.map((text) => action(text, () => fill(text))));

function fill(text) {
  query.value = text;
  run();
}

// Reads the texts in batches, unless this model has read them.
function keep(model) {
  if (kept?.given === given && kept.model === model) return kept.ready;
  kept?.stop.abort();
  const stop = new AbortController();
  const { texts } = given;
  layout = null;
  kept = { given, model, stop };
  kept.ready = read(texts, model, stop.signal).catch((failure) => {
    if (kept?.stop === stop) kept = null;
    throw failure;
  });
  return kept.ready;
}

async function read(texts, model, signal) {
  const started = performance.now();
  progress.value = 0;
  progress.style.visibility = "visible";
  const { vectors, size, warning } = await readVectors(texts, model, signal, (done) => {
    progress.value = done / texts.length;
    status.textContent = `${count(done)} of ${count(texts.length)} texts read …`;
  });
  layout = await background("keep", { texts, vectors, size });
  progress.style.visibility = "hidden";
  map.show(texts, layout);
  drawLegend();
  square.replaceChildren();
  drawMatrix();
  close.show(texts, null);
  background("duplicates").then((pairs) => close.show(texts, pairs));
  return { seconds: (performance.now() - started) / 1000, warning };
}

function drawLegend() {
  const counts = d3.rollup([...layout.assigned], (rows) => rows.length, (one) => one);
  const made = layout.words.map((words, i) => {
    const swatch = element("i");
    swatch.style.background = `var(--cluster-${i})`;
    const button = element("button", { type: "button" }, swatch, `${words.join(", ") || "other"} `, element("small", { textContent: counts.get(i) ?? 0 }));
    button.setAttribute("aria-pressed", false);
    button.addEventListener("click", () => {
      cluster = cluster === i ? null : i;
      for (const [k, other] of [...legend.children].entries()) other.setAttribute("aria-pressed", k === cluster);
      map.light(null, cluster);
      run();
    });
    return button;
  });
  legend.replaceChildren(...made.filter((_, i) => counts.has(i)));
}

// Answers what is typed. While one question is on its way the newest one waits, and those between are passed over.
let [running, again] = [null, false];
export function run() {
  settling.abort();
  again = Boolean(running);
  running ??= answer().catch((failure) => report("search", failure)).finally(() => {
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
  const { texts } = given;
  const reading = !(kept?.given === given && kept.model === model && layout);
  const { seconds, warning: unread } = await keep(model);
  if (texts !== given.texts) return;
  const started = performance.now();
  const most = cluster === null ? SHOWN : texts.length;
  let hits = texts.map((_, i) => [i, null]);
  let said = reading ? `${count(texts.length)} texts read in ${seconds.toFixed(1)} s.` : `${count(texts.length)} texts.`;
  let note = unread;
  vector = null;
  if (text) {
    const { vectors, timing, warning } = await embed([text], model);
    const found = await background("ask", { query: vectors, most });
    [hits, vector, note] = [found.hits, vectors, warning ?? unread];
    map.ask(found.point, hits);
    const total = timing.find(([stage]) => stage === "total")?.[1] ?? 0;
    const parts = `the question read in ${total.toFixed(1)} ms, ${count(texts.length)} texts compared in ${found.took.toFixed(1)} ms`;
    said = `${(performance.now() - started).toFixed(0)} ms: ${parts}.${reading ? ` ${said}` : ""}`;
  } else map.ask(null, []);
  if (cluster !== null) hits = hits.filter(([i]) => layout.assigned[i] === cluster);
  const shown = hits.slice(0, cluster === null ? SHOWN : 50);
  status.textContent = said;
  draw(shown, note);
  settle(text, model, shown);
}

function draw(hits, note) {
  const items = hits.map(([i, cosine]) => {
    const text = element("button", { type: "button", className: "text", textContent: given.texts[i] });
    text.title = "Show what is like this text";
    text.addEventListener("click", () => fill(given.texts[i]));
    text.addEventListener("focus", () => map.light(i, cluster));
    const swatch = element("i");
    swatch.style.background = `var(--cluster-${layout.assigned[i]})`;
    const meta = element("p", { className: "meta" }, swatch, cosine === null ? "" : `${cosine.toFixed(2)} alike`);
    const item = element("li", {}, text, meta);
    item.addEventListener("pointerenter", () => map.light(i, cluster));
    item.addEventListener("pointerleave", () => map.light(null, cluster));
    return item;
  });
  results.replaceChildren(...items);
  if (note) status.append(" ", element("span", { className: "refused", textContent: note }));
}

// When nothing is typed for a while: which words made the matches, which say the same or the opposite, and the address.
function settle(text, model, hits) {
  settling = new AbortController();
  const { signal } = settling;
  setTimeout(async () => {
    if (signal.aborted) return;
    const question = typed("search");
    const link = address(question, null);
    if (!byId("panel-search").hidden) remember("search", link);
    const whole = given === EXAMPLE || linked.value;
    const [button, note] = copying(link, whole ? "link" : "link (of the question, without the texts)");
    more.replaceChildren(
      element("div", { className: "actions" }, button, action("Save CSV", saveAll), note),
      requests("embed", { inputs: text ? [text] : given.texts.slice(0, 2), model, long: "mean" }),
    );
    if (!text || !hits.length) return;
    try {
      const texts = hits.slice(0, SHOWN).map(([i]) => given.texts[i]);
      await Promise.all([
        relations(text, texts, signal).then((said) => said.forEach((one, i) => one && results.children[i].querySelector(".meta").append(" · ", one))),
        evidenceOfMatch(texts, hits, vector, model, signal).then((marked) => marked.forEach((parts, i) => results.children[i].querySelector(".text").replaceChildren(...parts))),
      ]);
    } catch (failure) {
      if (failure.name !== "AbortError") report("search", failure);
    }
  }, IDLE);
}

async function saveAll() {
  const { texts, rows, columns } = given;
  const all = vector ? (await background("ask", { query: vector, most: texts.length })).hits : texts.map((_, i) => [i, null]);
  const words = (i) => layout.words[layout.assigned[i]].join(" ");
  save(csv([[...columns, "similarity", "cluster"], ...all.map(([i, cosine]) => [...rows[i], cosine?.toFixed(4) ?? "", words(i)])]), "search.csv");
}

async function drawMatrix() {
  if (!matrixBox.open || square.hasChildNodes() || !layout) return;
  const question = query.value.trim();
  const near = question && given.texts.length > MATRIX;
  let rows = d3.range(Math.min(MATRIX, given.texts.length));
  if (near) {
    const { vectors } = await embed([question], kept.model);
    rows = (await background("ask", { query: vectors, most: MATRIX })).hits.map(([i]) => i);
  }
  rows = d3.sort(rows, (i) => layout.assigned[i]); // texts of a cluster stand together
  const cosines = await background("matrix", { rows });
  const name = `Cosine of every two of ${rows.length} texts${near ? ", those closest to the question" : ""}`;
  square.replaceChildren(matrix(rows.map((i) => given.texts[i]), cosines, name));
}
matrixBox.addEventListener("toggle", drawMatrix);

let shownTexts = "";
export const search = {
  task: "embed",
  fits: () => true, // every model has vectors
  // Texts of a link come first.
  async ask() {
    if (linked.value && linked.value !== given.texts.join("\n") && linked.value !== shownTexts) {
      shownTexts = linked.value;
      use.field.value = linked.value;
      await use.read("your lines", linked.value);
    }
    await run();
  },
};

query.addEventListener("input", () => kept && run());
