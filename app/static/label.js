// The second tab: a text, or a file of them, with labels of the user's or of a trained classifier.

import { bars, judgement } from "./answers.js";
import { attempt, report } from "./attempt.js";
import { collection, csv } from "./collection.js";
import { byId, counted, element, percent } from "./dom.js";
import { CLASSIFIED, LABELLED, USES } from "./examples.js";
import { ORDINARY, took, trusted, warned } from "./explanation.js";
import { address, remember } from "./link.js";
import { joined } from "./notes.js";
import { ask } from "./requests.js";
import { actions, button, requests, save } from "./results.js";
import { tags } from "./tags.js";
import { term } from "./terms.js";

export const OWN = ""; // the value of the choice "labels of your own"
const BATCH = 32; // texts in a request
const SHOWN = 200; // rows of a file that are listed
const SHORT = 300; // characters of a text that a row shows before the rest is asked for

const text = byId("text");
const form = document.querySelector("form[data-tab=label]");
const ownLabels = tags(byId("tags"), byId("labels"), () => text.value.trim() && form.requestSubmit());
ownLabels.draw();
let cards = [];
let rows = null; // texts of a file, which are labelled in place of the one text

const chosen = () => byId("model-label").value;
const card = () => cards.find(({ name }) => name === chosen());

const use = collection(byId("label-collection"), "label", (table) => {
  rows = table;
  attempt(labelRows, "label");
}, (failure) => report("label", failure));
single();

// The one text is labelled, and no file.
function single() {
  rows = null;
  use.describe("Many texts?");
}

const useOf = ({ labels }) => USES[Object.keys(USES).find((label) => labels.includes(label))];

// Texts for a classifier with these labels.
const ofClassifier = ({ labels }) => CLASSIFIED[Object.keys(CLASSIFIED).find((label) => labels.includes(label)) ?? "any"];

// Examples for the labels that are chosen, and the tags where they are the user's.
function offer() {
  byId("tags").hidden = chosen() !== OWN;
  const examples = chosen() === OWN || !card() ? LABELLED : ofClassifier(card()).map((example) => ({ name: example, text: example, labels: null }));
  byId("label-tries").replaceChildren("Try: ", ...examples.map((example) => button(example.name, () => {
    single();
    text.value = example.text;
    if (example.labels) ownLabels.set(example.labels); // which asks
    else form.requestSubmit();
  })));
}

// The request for these texts, one or a list.
function request(inputs, truncate) {
  const cut = truncate ? { truncate } : {};
  return chosen() === OWN ? { inputs, labels: ownLabels.read(), ...cut } : { inputs, model: chosen(), ...cut };
}

// What is said of one text, with labels of the user's or of a classifier: {prediction}, as of /explain, and `none`.
function read(answer) {
  const ranked = answer.labels ?? answer;
  const known = ranked.filter(({ label }) => label !== null); // null: the model abstains
  const scores = Object.fromEntries(known.map(({ label, score }) => [label, score]));
  if (answer.labels) {
    const label = answer.none > 0.5 ? "None of these" : ranked[0].label;
    return { prediction: { label, scores }, none: answer.none };
  }
  return { prediction: { label: ranked[0].label, scores } };
}

// The labels, the likeliest in bold unless none fits, and under a line "none of these".
function ownBars({ scores }, none) {
  const box = bars(Object.entries(scores), none > 0.5 ? Infinity : d3.max(Object.values(scores)));
  box.append(element("hr"), ...bars([["None of these", none]], 0.5).children);
  return box;
}

// What /explain says of a text that is far from those that the classifier learned from; null: it is not, or nothing is known.
async function far(signal) {
  if (chosen() === OWN || !("explain.onnx" in card().files)) return null;
  const known = await ask("explain", { inputs: text.value, model: chosen(), trust: true, truncate: true }, signal).catch((failure) => {
    if (failure.code !== "input_too_long") throw failure;
    return null; // longer than texts are explained
  });
  const typical = known?.answer.trust.typical ?? null;
  return typical !== null && typical < ORDINARY ? known.answer : null;
}

// A text, of a long one its beginning and the rest on demand.
function folded(whole) {
  const letters = [...whole]; // no character is cut in halves
  if (letters.length <= SHORT) return [whole];
  const start = letters.slice(0, SHORT).join("");
  const more = element("details", {}, element("summary", { textContent: `The whole text (${letters.length.toLocaleString("en")} characters)` }), whole);
  return [`${start} …`, more];
}

async function labelText(signal, question, truncate) {
  const body = request(text.value, truncate);
  const link = address(question, null);
  remember("label", link);
  const [{ answer, timing, notes }, unusual] = await Promise.all([ask("classify", body, signal), far(signal)]);
  const { prediction, none } = read(answer);
  const place = byId("answer-label");
  const drawn = none === undefined
    ? judgement({ prediction }, card().multi_label)
    : [element("h2", { textContent: prediction.label }), ownBars(prediction, none), element("p", { className: "key" }, "The labels share 100 %, even if none fits: see “None of these”. ", term("labels of your own"))];
  const done = actions(link, answer);
  if (none === undefined) {
    done.prepend(button("Why this answer?", () => {
      location.hash = new URLSearchParams({ tab: "why", model: chosen(), "why-text": text.value });
    }));
  }
  place.replaceChildren(...drawn, ...warned(notes), ...(unusual && !notes ? [trusted(unusual)] : []), done, took(timing), requests("classify", body));
}

async function labelRows(signal) {
  const { texts } = rows;
  const place = byId("answer-label");
  const progress = element("progress", { max: texts.length, value: 0 });
  progress.setAttribute("aria-label", "Texts labelled");
  place.replaceChildren(element("h2", { textContent: counted(texts.length, "text") }), progress);
  const results = [];
  let notes = null;
  for (let from = 0; from < texts.length; from += BATCH) {
    const { answer, notes: more } = await ask("classify", request(texts.slice(from, from + BATCH), true), signal);
    results.push(...answer.map(read));
    notes = joined(notes, more, texts.length);
    progress.value = results.length;
  }
  const best = ({ prediction: { label, scores }, none }) => [label ?? "no label", label === "None of these" ? none : (scores[label] ?? d3.max(Object.values(scores)))];
  const counts = d3.rollups(results, (all) => all.length / results.length, (result) => best(result)[0]).sort(([, a], [, b]) => b - a);
  const labels = chosen() === OWN ? ownLabels.read() : card().labels;
  const download = button("Save CSV", () => save(csv([
    [...rows.columns, "label", ...labels.map((label) => `score ${label}`), ...(chosen() === OWN ? ["none of these"] : [])],
    ...results.map((result, i) => [...rows.rows[i], best(result)[0], ...labels.map((label) => result.prediction.scores[label]?.toFixed(4)), ...(chosen() === OWN ? [result.none.toFixed(4)] : [])]),
  ]), "labelled.csv"));
  const line = (result, i) => {
    const [label, score] = best(result);
    return element("tr", {}, element("td", { dir: "auto" }, ...folded(texts[i])), element("td", { textContent: label }), element("td", { textContent: percent(score) }));
  };
  const head = element("tr", {}, ...["Text", "Label", "How sure"].map((textContent) => element("th", { scope: "col", textContent })));
  const table = element("table", { className: "labelled" }, element("thead", {}, head), element("tbody", {}, ...results.slice(0, SHOWN).map(line)));
  const cut = results.length > SHOWN ? [element("p", { className: "key", textContent: `The first ${SHOWN} are listed; the file has all ${results.length.toLocaleString("en")}.` })] : [];
  place.replaceChildren(
    element("h2", { textContent: `${counted(texts.length, "text")}: ${counts[0][0]} most often` }), bars(counts, counts[0][1]), element("p", { className: "key", textContent: "The share of the texts that has each label." }),
    ...warned(notes), element("div", { className: "actions" }, download), ...cut, table, requests("classify", request(texts.slice(0, 2), false)),
  );
}

text.addEventListener("input", single);

export const label = {
  task: "zero-shot",
  fits: (card) => card.kind === "classification",
  // The choices: the user's labels, if a loaded model can, and each classifier.
  options(known, defaults) {
    cards = known;
    const trained = known.filter(label.fits).map(({ name, labels }) => ({ value: name, text: `${labels.slice(0, 3).join(", ")}${labels.length > 3 ? " …" : ""} (${name})`, group: useOf({ labels })?.group ?? "Other trained labels" }));
    if (!("zero-shot" in defaults) && trained.length && text.value === LABELLED[0].text) text.value = ofClassifier(known.find(label.fits))[0];
    return ["zero-shot" in defaults ? [{ value: OWN, text: "Labels of your own" }] : [], trained].flat();
  },
  about: (card) => useOf(card)?.about ?? "",
  chosen: offer,
  // A link was followed.
  drawn() {
    single();
    ownLabels.draw();
  },
  async ask({ signal, question, truncate }) {
    ownLabels.take();
    if (chosen() === OWN && !ownLabels.read().length) throw new Error("Add a label or two first.");
    if (rows) return labelRows(signal);
    return labelText(signal, question, truncate);
  },
};
