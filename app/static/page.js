// The page: one tab per task, and below each answer a picture of what the model attends to.

import { element, heatMap, judgement, pictures } from "./draw.js";
import { actions, readLink, whatIf, writeLink } from "./results.js";
import { asCurl, asPython, ask, Refused, useKey } from "./requests.js";

const TABS = {
  similarity: { task: "embed", fits: () => true },
  entailment: { task: "nli", fits: (card) => card.kind === "nli" },
  relatedness: { task: "relatedness", fits: (card) => card.kind === "relatedness" },
  classification: { task: "classify", fits: (card) => card.kind === "classification" },
};
const WAIT = 120; // milliseconds after a slider's last move before the request

const byId = (id) => document.getElementById(id);
const status = byId("status");
const error = byId("error");
let cards = [];
let running = new AbortController();

// Tabs as the ARIA practices define them: arrow keys move, one tab stop.

const tabs = [...document.querySelectorAll("[role=tab]")];

function choose(tab, { focus = true } = {}) {
  for (const other of tabs) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", chosen);
    other.tabIndex = chosen ? 0 : -1;
    byId(other.getAttribute("aria-controls")).hidden = !chosen;
  }
  if (focus) tab.focus();
  const { tab: name } = byId(tab.getAttribute("aria-controls")).querySelector("form").dataset;
  if (cards.length && !byId(`model-${name}`).disabled && !byId(`answer-${name}`).hasChildNodes()) submit(name);
}

for (const tab of tabs) {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const shown = tabs.filter((other) => !other.hidden);
    if (step) choose(shown[(shown.indexOf(tab) + step + shown.length) % shown.length]);
  });
}

const theme = byId("theme");
function paint() {
  if (theme.value === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}
theme.value = localStorage.getItem("theme") ?? "auto";
paint();
theme.addEventListener("change", () => {
  localStorage.setItem("theme", theme.value);
  paint();
});

// Requests: the newest wins, errors are shown in the service's words.

async function attempt(work, tab = null) {
  const place = tab && byId(`answer-${tab}`);
  if (tab) document.querySelector(`form[data-tab=${tab}]`).append(status, error); // next to what they are about
  for (const stopped of document.querySelectorAll("[aria-busy]")) stopped.removeAttribute("aria-busy");
  place?.setAttribute("aria-busy", "true");
  running.abort();
  running = new AbortController();
  const { signal } = running;
  error.textContent = "";
  status.textContent = "Asking…";
  try {
    await work(signal);
  } catch (failure) {
    if (failure.name === "AbortError") return;
    place?.replaceChildren(); // no answer to another question stays
    // There is no such field here.
    const said = failure.message.replace(/, or set truncate to true$/, "");
    error.textContent = failure instanceof Refused ? said : "The service does not answer.";
    error.scrollIntoView({ block: "nearest" });
    if (failure.status === 401) byId("key").hidden = false;
  } finally {
    if (!signal.aborted) {
      status.textContent = "";
      place?.removeAttribute("aria-busy");
    }
  }
}

byId("key").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(byId("api-key").value);
  byId("key").hidden = true;
  attempt(start);
});

// The models, and the card of the selected one.

async function start(signal) {
  const { answer } = await ask("models", null, signal);
  cards = answer.models;
  for (const [tab, { task, fits }] of Object.entries(TABS)) picker(tab, cards.filter(fits), answer.defaults[task]);
  byId("tab-relatedness").hidden = !("relatedness" in answer.defaults);
  const tab = readLink(TABS);
  choose(byId(`tab-${tab ?? shownFirst()}`), { focus: false });
}

// The first task that a loaded model does.
function shownFirst() {
  return tabs.map((tab) => tab.id.slice(4)).find((name) => !byId(`model-${name}`).disabled) ?? "similarity";
}

function submit(tab) {
  document.querySelector(`form[data-tab=${tab}]`).requestSubmit();
}

function picker(tab, able, chosen) {
  const place = document.querySelector(`form[data-tab=${tab}] .model`);
  const select = element("select", { id: `model-${tab}` });
  const option = ({ name }) => element("option", { textContent: name, value: name, selected: name === chosen });
  select.append(...able.map(option));
  const described = element("details", {}, element("summary", { textContent: "Model card" }), element("div"));
  const describe = () => described.lastChild.replaceChildren(about(able.find((card) => card.name === select.value)));
  select.addEventListener("change", () => {
    describe();
    submit(tab);
  });
  const label = element("label", { textContent: able.length ? "Model" : "No loaded model does this" });
  label.htmlFor = select.id;
  place.replaceChildren(element("div", {}, label, select), described);
  select.disabled = !able.length;
  if (able.length) describe();
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

const chosen = (tab) => byId(`model-${tab}`).value;

// Similarity.

async function similarity(signal) {
  const inputs = byId("sentences").value.split("\n").map((line) => line.trim()).filter(Boolean);
  const body = { inputs, model: chosen("similarity") };
  const { answer, timing } = await ask("embed", body, signal);
  const cosines = answer.map((a) => answer.map((b) => d3.sum(a, (value, i) => value * b[i])));
  const names = inputs.map((_, i) => String(i + 1));
  const map = heatMap({
    rows: names, columns: names, weights: cosines, name: "Cosine of every two sentences",
    domain: [Math.min(0, d3.min(cosines.flat())), 1], link: false, format: (value) => value.toFixed(3), numbers: inputs.length <= 12,
  });
  const list = element("ol");
  list.append(...inputs.map((text) => element("li", { textContent: text })));
  const select = element("select", { id: "explained" });
  select.append(...inputs.map((text, i) => element("option", { value: i, textContent: text })));
  const label = element("label", { textContent: "Explain" });
  label.htmlFor = select.id;
  const picture = element("div");
  const explained = () => explanation("similarity", picture, { inputs: inputs[select.value], model: body.model });
  select.addEventListener("change", () => attempt(explained(), "similarity"));
  byId("answer-similarity").replaceChildren(
    element("h2", { textContent: "Similarity" }), element("div", { className: "maps beside" }, map, list), took(timing), requests("/embed", body),
    label, select, picture,
  );
  await explained()(signal);
}

// Explanations: requested with the priors that the controls show, and redrawn at each change.

function explanation(tab, place, body, top = () => []) {
  let priors = null;
  const able = cards.filter(TABS[tab].fits);
  const gradients = element("input", { type: "checkbox" });
  const label = element("label", { className: "prior" }, gradients, "integrated gradients (slower)");
  const redraw = async (signal) => {
    const asked = { ...body, evidence: true, trust: true, ...(priors && { priors }), ...(gradients.checked && { gradients: true }) };
    const { answer, timing } = await ask("explain", asked, signal);
    if (!priors) {
      const box = controls(answer.priors, (changed) => { priors = changed; attempt(redraw, tab); });
      place.replaceChildren(element("div"), box, label, element("div"));
    }
    const open = place.querySelector("details.why")?.open ?? false;
    place.firstChild.replaceChildren(...top(answer), trusted(answer), ...pictures(answer));
    for (const why of place.querySelectorAll("details.why")) why.open = open;
    place.lastChild.replaceChildren(
      actions(answer, place, status), whatIf(asked, answer, able.map(({ name }) => name)), took(timing), requests("/explain", asked),
    );
  };
  gradients.addEventListener("change", () => attempt(redraw, tab));
  return redraw;
}

// How far the answer can be trusted, in a sentence.
function trusted({ trust, sentences }) {
  const said = [];
  const words = d3.sum(sentences, (one) => one.tokens.length);
  const unlisted = Math.round(trust.composed_words * words);
  if (unlisted) said.push(`${unlisted} of ${words} words are not in the vocabulary`);
  if (trust.typical !== null) said.push(`${(100 * trust.typical).toFixed(0)} % of the training sentences lie as far out`);
  return element("p", { className: "trust", textContent: said.join(" · ") });
}

function controls(priors, changed) {
  const box = element("fieldset", { className: "priors" }, element("legend", { textContent: "Priors" }));
  const state = { ...priors };
  if (!Object.keys(priors).length) box.append(element("span", { textContent: "This encoder has none." }));
  let timer;
  const tell = () => {
    clearTimeout(timer);
    timer = setTimeout(() => changed({ ...state }), WAIT);
  };
  for (const [name, value] of Object.entries(priors)) {
    const slider = typeof value === "number";
    const input = element("input", slider ? { type: "range", min: 0, max: 4, step: 0.05, value } : { type: "checkbox", checked: value });
    input.dataset.prior = name;
    const shown = element("output", { textContent: slider ? value.toFixed(2) : "" });
    input.addEventListener("input", () => {
      state[name] = slider ? Number(input.value) : input.checked;
      if (slider) shown.textContent = state[name].toFixed(2);
      tell();
    });
    box.append(element("label", { className: "prior" }, name, input, shown));
  }
  return box;
}

function took(timing) {
  const total = timing.find(([stage]) => stage === "total")?.[1] ?? 0;
  const fast = total < 100 ? " (under 100 ms)" : "";
  const text = timing.map(([stage, time]) => `${stage} ${time.toFixed(1)} ms`).join(" · ") + fast;
  return element("p", { className: "timing", textContent: `Took: ${text}` });
}

function requests(path, body) {
  const box = element("details", { className: "requests" }, element("summary", { textContent: `The request to ${path}, as curl and Python` }));
  for (const [name, code] of [["curl", asCurl(path, body)], ["Python", asPython(path, body)]]) {
    const copy = element("button", { type: "button", textContent: `Copy ${name}` });
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code);
      status.textContent = `${name} copied.`;
    });
    const shown = element("pre", { textContent: code, tabIndex: 0 });
    box.append(element("h3", { textContent: name }), shown, copy);
  }
  return box;
}

const ASKED = {
  similarity,
  entailment: (signal) => {
    const inputs = { premise: byId("premise").value, hypothesis: byId("hypothesis").value };
    return explanation("entailment", byId("answer-entailment"), { inputs, model: chosen("entailment") }, judgement)(signal);
  },
  relatedness: (signal) => {
    const inputs = { a: byId("first").value, b: byId("second").value };
    return explanation("relatedness", byId("answer-relatedness"), { inputs, model: chosen("relatedness") }, judgement)(signal);
  },
  classification: (signal) => {
    const body = { inputs: byId("text").value, model: chosen("classification") };
    return explanation("classification", byId("answer-classification"), body, judgement)(signal);
  },
};

for (const form of document.querySelectorAll("form[data-tab]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const { tab } = form.dataset;
    writeLink(tab);
    attempt(ASKED[tab], tab);
  });
  form.addEventListener("keydown", (event) => {
    const lines = event.target.id === "sentences"; // there Enter is a new line, with Ctrl a request
    if (event.key !== "Enter" || event.target.tagName !== "TEXTAREA" || event.shiftKey || (lines && !event.ctrlKey && !event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit();
  });
}

attempt(start);
