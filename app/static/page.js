// The page: one tab per task, and below each answer a picture of what the model attends to.

import { attempt } from "./attempt.js";
import { element, heatMap, judgement } from "./draw.js";
import { explanation, took, warned } from "./explanation.js";
import { address, EXPLAINED, readLink, recall, remember, typed } from "./link.js";
import { actions, requests } from "./results.js";
import { ask, Refused, useKey } from "./requests.js";

// `inputs` are those of /explain. A text that is too long for it is sent to /`task` as `plain`, and that answer is `read`.
const TABS = {
  similarity: { task: "embed", fits: () => true },
  entailment: {
    task: "nli",
    fits: (card) => card.kind === "nli",
    inputs: () => ({ premise: byId("premise").value, hypothesis: byId("hypothesis").value }),
    plain: (inputs) => inputs,
    read: (prediction) => ({ prediction }),
  },
  relatedness: {
    task: "relatedness",
    fits: (card) => card.kind === "relatedness",
    inputs: () => ({ a: byId("first").value, b: byId("second").value }),
    plain: (inputs) => ({ pairs: [inputs] }),
    read: ({ scores: [relatedness] }) => ({ relatedness }),
  },
  classification: {
    task: "classify",
    fits: (card) => card.kind === "classification",
    inputs: () => byId("text").value,
    plain: (inputs) => ({ inputs }),
    read: (ranked) => {
      const known = ranked.filter(({ label }) => label !== null); // null: the model abstains
      const scores = Object.fromEntries(known.map(({ label, score }) => [label, score]));
      return { prediction: { label: ranked[0].label, scores } };
    },
  },
};
const AGAIN = 3000; // milliseconds until a service whose models are loading is asked again
const MOST = 150; // sentences whose map a browser draws in two seconds

const byId = (id) => document.getElementById(id);
let cards = [];

// Tabs as the ARIA practices define them: arrow keys move, one tab stop.

const tabs = [...document.querySelectorAll("[role=tab]")];
const nameOf = (tab) => tab.id.slice("tab-".length);
const able = (name) => cards.length > 0 && !byId(`model-${name}`).disabled;

function show(tab) {
  tab.hidden = false; // a link may name a task that no loaded model does
  for (const other of tabs) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", chosen);
    other.tabIndex = chosen ? 0 : -1;
    byId(other.getAttribute("aria-controls")).hidden = !chosen;
  }
}

function choose(tab) {
  show(tab);
  const name = nameOf(tab);
  recall(name);
  if (able(name) && !byId(`answer-${name}`).hasChildNodes()) put(name);
}

for (const tab of tabs) {
  tab.addEventListener("click", () => {
    tab.focus(); // Safari does not
    choose(tab);
  });
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const shown = tabs.filter((other) => !other.hidden);
    if (step) shown[(shown.indexOf(tab) + step + shown.length) % shown.length].click();
  });
}

const theme = byId("theme");
function paint() {
  if (theme.value === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}
try {
  theme.value = localStorage.getItem("theme");
} catch {
  // A browser that keeps no site data does not remember the colours.
}
theme.value ||= "auto"; // nothing is stored, or a value of another program at this address
paint();
theme.addEventListener("change", () => {
  paint();
  try {
    localStorage.setItem("theme", theme.value);
  } catch {
    // As above.
  }
});

byId("key").addEventListener("submit", async (event) => {
  event.preventDefault();
  useKey(byId("api-key").value);
  byId("key").hidden = true;
  await begin();
  if (document.activeElement === document.body) document.querySelector("[role=tabpanel]:not([hidden]) textarea").focus();
});

// The models, and the card of the selected one.

let again;

async function begin() {
  const failure = await attempt(start);
  clearTimeout(again);
  if (failure?.status === 503) again = setTimeout(() => cards.length || begin(), AGAIN);
}

async function start(signal) {
  const { answer } = await ask("models", null, signal);
  cards = answer.models;
  for (const [tab, { task, fits }] of Object.entries(TABS)) picker(tab, cards.filter(fits), answer.defaults[task]);
  byId("tab-relatedness").hidden = !("relatedness" in answer.defaults);
  if (!follow()) choose(shownFirst());
}

// The chosen tab, or else the first, whose task a loaded model does.
function shownFirst() {
  const chosen = tabs.find((tab) => tab.getAttribute("aria-selected") === "true");
  return [chosen, ...tabs].find((tab) => able(nameOf(tab))) ?? byId("tab-similarity");
}

// Shows what the address asks; false if it asks nothing.
function follow() {
  const link = readLink(TABS);
  if (!link) return false;
  const { tab, question, priors, missing } = link;
  show(byId(`tab-${tab}`));
  const work = async (signal) => {
    if (!able(tab)) throw new Refused(404, { message: "No loaded model does what the link asks." });
    if (missing !== null) throw new Refused(404, { message: `The link names the model ${missing}, which is not loaded: choose another.` });
    await ASKED[tab](signal, tab, question, priors);
  };
  attempt(work, tab);
  return true;
}

addEventListener("hashchange", () => {
  if (cards.length) follow();
});

// Asks what the form of the tab holds; first for the models, if they did not come.
function put(tab) {
  if (!cards.length) return begin();
  attempt((signal) => ASKED[tab](signal, tab, typed(tab), null), tab);
}

function picker(tab, fitting, chosen) {
  const form = document.querySelector(`form[data-tab=${tab}]`);
  const select = element("select", { id: `model-${tab}` });
  const option = ({ name }) => element("option", { textContent: name, value: name, selected: name === chosen });
  select.append(...fitting.map(option));
  const described = element("details", {}, element("summary", { textContent: "Model card" }), element("div"));
  const describe = () => described.lastChild.replaceChildren(about(fitting.find((card) => card.name === select.value)));
  select.addEventListener("change", () => {
    if (!form.checkValidity()) byId(`answer-${tab}`).replaceChildren(); // of another model
    form.requestSubmit();
  });
  const label = element("label", { textContent: fitting.length ? "Model" : "No loaded model does this" });
  label.htmlFor = select.id;
  form.querySelector(".model").replaceChildren(element("div", {}, label, select), described);
  select.disabled = form.querySelector("[type=submit]").disabled = !fitting.length;
  if (!fitting.length) return;
  select.addEventListener("input", describe);
  describe();
}

function about(card) {
  const list = element("dl");
  const scores = card.scores.map((score) => `${score.dataset} ${score.split}: ${score.metric} ${score.value.toFixed(3)}`);
  const rows = {
    encoder: `${card.encoder.name}, ${card.encoder.parameters.toLocaleString("en")} parameters without word vectors`,
    paper: card.encoder.paper,
    values: card.dimension,
    labels: card.labels.join(", "),
    "longest text": `${card.max_tokens} tokens`,
    scores: scores.join("; "),
    licence: card.licence,
  };
  for (const [name, value] of Object.entries(rows)) {
    if (value !== "") list.append(element("dt", { textContent: name }), element("dd", { textContent: value }));
  }
  return list;
}

const names = (tab) => cards.filter(TABS[tab].fits).map(({ name }) => name);
const chosen = (tab) => byId(`model-${tab}`).value;
const judge = (answer) => judgement(answer, cards.find(({ name }) => name === answer.model).multi_label);

// Similarity.

async function similarity(signal, tab, question, priors) {
  remember(tab, address(question, priors));
  const inputs = byId("sentences").value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (inputs.length > MOST) {
    throw new Refused(422, { message: `These are ${inputs.length} sentences: the page compares up to ${MOST}, POST /embed takes more.` });
  }
  const body = { inputs, model: chosen(tab) };
  const { answer, timing, warning } = await ask("embed", body, signal);
  const cosines = answer.map((a) => answer.map((b) => d3.sum(a, (value, i) => value * b[i])));
  const numbers = inputs.map((_, i) => String(i + 1));
  const map = heatMap({
    rows: numbers, columns: numbers, weights: cosines, name: "Cosine of every two sentences",
    domain: [Math.min(0, d3.min(cosines.flat())), 1], compared: true, format: (value) => value.toFixed(3), numbers: inputs.length <= 12,
  });
  const list = element("ol");
  list.append(...inputs.map((text) => element("li", { textContent: text })));
  const select = element("select", { id: "explained" });
  select.append(...inputs.map((text, i) => element("option", { value: i, textContent: text })));
  const linked = [...select.options].find(({ value }) => value === question.get(EXPLAINED));
  if (linked) linked.selected = true;
  const label = element("label", { textContent: "Explain" });
  label.htmlFor = select.id;
  const picture = element("div");
  const explain = (settings) => {
    const one = { inputs: inputs[select.value], model: body.model };
    const work = explanation({ tab, place: picture, question, body: one, models: names(tab), priors: settings, judge });
    return attempt(work, tab, () => picture.replaceChildren()); // the map stays
  };
  select.addEventListener("change", () => {
    question.set(EXPLAINED, select.value);
    explain(null);
  });
  byId("answer-similarity").replaceChildren(
    element("h2", { textContent: "Similarity" }), ...warned(warning), element("div", { className: "maps beside" }, map, list),
    took(timing), requests("embed", body), label, select, picture,
  );
  await explain(priors);
}

// A question to the model of a tab: its answer with pictures, or without them where the text is too long to be explained.
async function answered(signal, tab, question, priors) {
  const place = byId(`answer-${tab}`);
  const body = { inputs: TABS[tab].inputs(), model: chosen(tab) };
  try {
    await explanation({ tab, place, question, body, models: names(tab), priors, judge, top: judge })(signal);
  } catch (failure) {
    if (failure.code !== "input_too_long" || priors) throw failure;
    const { task, plain, read } = TABS[tab];
    const asked = { ...plain(body.inputs), model: body.model };
    const { answer, timing, warning } = await ask(task, asked, signal);
    const why = `${failure.message.replace(/(; send a shorter text|: shorten it)?, or set truncate to true$/, "")}, so the pictures are left out.`;
    place.replaceChildren(
      ...judge({ model: body.model, ...read(answer) }), ...warned(warning), element("p", { className: "key", textContent: why }),
      actions(address(question, null), answer), took(timing), requests(task, asked),
    );
  }
}

const ASKED = { similarity, entailment: answered, relatedness: answered, classification: answered };

for (const form of document.querySelectorAll("form[data-tab]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    put(form.dataset.tab);
  });
}

// Enter asks, in the form of a what-if too.
document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  const lines = target.id === "sentences"; // there Enter is a new line, with Ctrl a request
  if (key !== "Enter" || target.tagName !== "TEXTAREA" || event.shiftKey || (lines && !event.ctrlKey && !event.metaKey)) return;
  if (event.isComposing || event.keyCode === 229) return; // it confirms what an input method composes; 229: in Safari
  event.preventDefault();
  target.form.querySelector("[type=submit]").click(); // which does nothing while it is disabled
});

begin();
