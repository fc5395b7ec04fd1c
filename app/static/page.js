// The page: one tab per use, and the models that answer.

import { attempt } from "./attempt.js";
import { compare } from "./compare.js";
import { byId, element } from "./dom.js";
import { label } from "./label.js";
import { readLink, recall, typed } from "./link.js";
import { ask, Refused, useKey } from "./requests.js";
import { search } from "./search.js";
import { nameOf, onChoice, show, shown, tabs } from "./tabs.js";
import { term } from "./terms.js";
import { withCut } from "./toolong.js";
import { why } from "./why.js";

// Of each tab: which `task` its default model does, which cards it `fits`, the `options` of its picker, in groups if they have
// one, `about(card)`: a sentence before the model's score, `chosen()` after a choice, and `ask({signal, question, priors, truncate, model})`.
const TABS = { search, label, compare, why };
const AGAIN = 3000; // milliseconds until a service whose models are loading is asked again

let cards = [];
const able = (name) => cards.length > 0 && !document.querySelector(`form[data-tab=${name}] [type=submit]`).disabled;

onChoice((tab) => {
  show(tab);
  const name = nameOf(tab);
  recall(name);
  if (able(name) && !byId(`answer-${name}`).hasChildNodes()) put(name);
});

byId("key").addEventListener("submit", async (event) => {
  event.preventDefault();
  useKey(byId("api-key").value);
  byId("key").hidden = true;
  await begin();
  if (document.activeElement === document.body) document.querySelector("[role=tabpanel]:not([hidden]) form").querySelector("textarea, input").focus();
});

let again;

async function begin() {
  const failure = await attempt(start);
  clearTimeout(again);
  if (failure?.status !== 503) return;
  again = setTimeout(() => cards.length || begin(), AGAIN);
  byId("error").append(" This page asks again.");
}

async function start(signal) {
  const { answer } = await ask("models", null, signal);
  cards = answer.models;
  for (const name of Object.keys(TABS)) picker(name, answer.defaults);
  if (!follow()) {
    const tab = [shown(), ...tabs].find((other) => able(nameOf(other)));
    if (tab) {
      show(tab);
      put(nameOf(tab));
    }
  }
}

// Shows the question of the address; false if it has none.
function follow() {
  const link = readLink(TABS);
  if (!link) return false;
  const { tab, question, priors, missing } = link;
  show(byId(`tab-${tab}`));
  TABS[tab].drawn?.();
  put(tab, { question, priors, missing });
  return true;
}

addEventListener("hashchange", () => {
  if (cards.length) follow();
});

// Sends the question in the tab's form; first loads the models, if they are missing.
function put(tab, request = {}) {
  if (!cards.length) return begin();
  const { question = typed(tab), priors = null, missing = null, truncate = false } = request;
  return attempt(async (signal) => {
    if (!able(tab)) throw new Refused(404, { message: "No loaded model does what the link asks." });
    if (missing !== null) throw new Refused(404, { message: `The link names the model ${missing}, which is not loaded: choose another.` });
    try {
      await TABS[tab].ask({ signal, question, priors, truncate, model: byId(`model-${tab}`).value });
    } catch (failure) {
      throw withCut(failure, () => put(tab, { question, priors, truncate: true }));
    }
  }, tab);
}

function picker(tab, defaults) {
  const { task, fits, options = (known) => known.map(({ name }) => ({ value: name, text: name })), about: before = () => "", chosen = () => {} } = TABS[tab];
  const form = document.querySelector(`form[data-tab=${tab}]`);
  const select = element("select", { id: `model-${tab}` });
  const offered = options(cards, defaults);
  for (const [label, group] of d3.group(offered, (option) => option.group)) {
    const items = group.map(({ value, text }) => element("option", { value, textContent: text, selected: value === defaults[task] }));
    select.append(...(label ? [element("optgroup", { label }, ...items)] : items));
  }
  const about = element("p", { className: "about" });
  const described = element("details", {}, element("summary", { textContent: "Model card" }), element("div"));
  const describe = () => {
    const card = cards.find(({ name }) => name === select.value);
    about.replaceChildren(...(card ? [`${before(card)} ${sentence(card, tab)} `, term("score")] : tab === "label" ? ["Type any labels: no training is needed."] : []));
    described.hidden = !card;
    described.lastChild.replaceChildren(...(card ? [details(card)] : []));
    chosen();
  };
  select.addEventListener("input", describe);
  select.addEventListener("change", () => {
    if (!form.checkValidity()) byId(`answer-${tab}`).replaceChildren(); // of another model
    form.requestSubmit();
  });
  const none = TABS[tab].able?.() ? "No loaded model says whether one sentence follows from the other: the rest is compared." : "No loaded model does this.";
  const name = element("label", { textContent: offered.length ? (tab === "label" ? "Labels" : "Model") : none });
  name.htmlFor = select.id;
  form.querySelector(".model").replaceChildren(element("div", {}, name, select), about, described);
  select.disabled = select.hidden = !offered.length;
  form.querySelector("[type=submit]").disabled = !(offered.length || TABS[tab].able?.());
  describe();
}

const agreement = (value) => `Agrees with people at ${value.toFixed(2)} of 1`;

// What a score says: a share of right answers, or a correlation with people's judgements.
const MEASURES = {
  accuracy: (value, kind) => `Right for ${(100 * value).toFixed(0)} of 100 ${kind === "nli" ? "pairs" : "texts"}`,
  spearman: agreement,
  pearson: agreement,
};

function measured({ kind }, { dataset, split, metric, value }) {
  const score = MEASURES[metric]?.(value, kind) ?? `${metric} ${value.toFixed(2)}`;
  return `${score} (${dataset.toUpperCase()}, ${split})`;
}

// How good the model was where that was measured, and what it reads.
function sentence(card, tab) {
  const score = card.scores.find(({ split }) => split === "test") ?? card.scores[0];
  const most = card.max_tokens;
  return `${score ? `${measured(card, score)}. ` : ""}Reads English, ${tab === "search" ? `texts of more than ${most} words in parts` : `up to ${most} words`}.`;
}

function details(card) {
  const list = element("dl");
  const rows = {
    design: `${card.encoder.name}${card.encoder.paper ? ` (${card.encoder.paper})` : ""}`,
    size: `${card.encoder.parameters.toLocaleString("en")} learned numbers, besides those of its words`,
    "a text becomes": `${card.dimension} numbers, its vector`,
    labels: card.labels.join(", "),
    "longest text": `${card.max_tokens} words and punctuation marks`,
    measured: [...new Set(card.scores.map((score) => measured(card, score)))].join("; "),
    licence: card.licence,
  };
  for (const [name, value] of Object.entries(rows)) {
    if (value !== "") list.append(element("dt", { textContent: name }), element("dd", { textContent: value }));
  }
  return list;
}

for (const form of document.querySelectorAll("form[data-tab]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    put(form.dataset.tab);
  });
}

// Enter asks, in the form of a what-if too; in a list of texts it is a new line.
document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (key !== "Enter" || target.tagName !== "TEXTAREA" || event.shiftKey || target.closest(".editor")) return;
  if (event.isComposing || event.keyCode === 229) return; // it confirms what an input method composes; 229: in Safari
  event.preventDefault();
  target.form.querySelector("[type=submit]").click(); // which does nothing while it is disabled
});

begin();
