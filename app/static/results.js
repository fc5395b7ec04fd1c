// What can be done with an answer: a link to it, files of it, its request, and the same question with a word or the model changed.

import { element, evidenceTokens } from "./draw.js";
import { asCurl, asPython, ask, said } from "./requests.js";

// Characters that XML cannot hold, as a text copied from a terminal may.
const NOT_XML = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;
const WIDEST = 16_384; // pixels that a canvas may have in every browser

function button(text, work) {
  const made = element("button", { type: "button", textContent: text });
  made.addEventListener("click", work);
  return made;
}

// A button that copies `text`, and beside it what came of that: the page's status may be far above.
function copying(text, name) {
  const note = element("span");
  note.setAttribute("role", "status");
  return [button(`Copy ${name}`, () => copy(text, name, note)), note];
}

// Browsers have navigator.clipboard on pages over HTTPS and from localhost alone.
async function copy(text, name, note) {
  note.textContent = "";
  const done = await navigator.clipboard?.writeText(text).then(() => true, () => false) || copySelected(text);
  const copied = `${name[0].toUpperCase()}${name.slice(1)} copied.`;
  note.textContent = done ? copied : "The browser does not let this page copy: select the text and copy it.";
}

function copySelected(text) {
  const focused = document.activeElement;
  const field = element("textarea", { value: text });
  document.body.append(field);
  field.focus({ preventScroll: true });
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  focused.focus({ preventScroll: true });
  return done;
}

// `trees` are the drawings of the answer's sentences, if it has any.
export function actions(link, answer, trees = []) {
  const json = () => new Blob([JSON.stringify(answer, null, 2)], { type: "application/json" });
  const made = [button("Save JSON", () => save(json(), "answer.json"))];
  if (trees.length) {
    made.push(
      button("Save SVG", () => save(asFile(drawing(trees)), "tree.svg")),
      button("Save PNG", async () => save(await asPng(drawing(trees)), "tree.png")),
    );
  }
  const [copyLink, note] = copying(link, "link");
  return element("div", { className: "actions" }, copyLink, ...made, note);
}

function save(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000); // when it has been written
}

// The trees one below the other, with the colours that they have here, which a file cannot take from the page's styles.
function drawing(trees) {
  const whole = d3.create("svg");
  let height = 0;
  for (const tree of trees) {
    const copied = tree.cloneNode(true);
    const parts = [tree, ...tree.querySelectorAll("*")];
    for (const [i, part] of [copied, ...copied.querySelectorAll("*")].entries()) {
      const style = getComputedStyle(parts[i]);
      for (const name of ["fill", "stroke", "stroke-width", "font-family", "font-size", "font-weight"]) {
        part.setAttribute(name, style.getPropertyValue(name));
      }
      part.removeAttribute("style");
    }
    copied.setAttribute("y", height);
    whole.append(() => copied);
    height += tree.height.baseVal.value;
  }
  return whole.attr("width", d3.max(trees, (tree) => tree.width.baseVal.value)).attr("height", height).node();
}

function asFile(svg) {
  const text = new XMLSerializer().serializeToString(svg).replace(NOT_XML, "\ufffd");
  return new Blob([text], { type: "image/svg+xml" });
}

async function asPng(svg) {
  const image = new Image();
  image.src = URL.createObjectURL(asFile(svg));
  await image.decode();
  const scale = Math.min(2, WIDEST / image.width);
  const canvas = element("canvas", { width: scale * image.width, height: scale * image.height });
  const context = canvas.getContext("2d");
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

export function requests(path, body) {
  const box = element("details", { className: "requests" }, element("summary", { textContent: `The request to /${path}, as curl and Python` }));
  for (const [name, code] of [["curl", asCurl(path, body)], ["Python", asPython(path, body)]]) {
    const shown = element("pre", { textContent: code, tabIndex: 0 });
    box.append(element("h3", { textContent: name }), shown, ...copying(code, name));
  }
  return box;
}

// The same question with other words, or to another model: both answers side by side.
// `judge` draws what an answer says. `latest()` is {asked, answer}: the request and the answer on the page. `clear()` removes
// what was shown.
export function whatIf(body, models, judge, latest) {
  const texts = typeof body.inputs === "string" ? { inputs: body.inputs } : body.inputs;
  const form = element("form", { className: "whatif" });
  const typed = Object.entries(texts).map(([name, value]) => {
    const field = element("textarea", { rows: 1, value, required: true, name });
    form.append(element("label", {}, name === "inputs" ? "Text" : name, field));
    return field;
  });
  const select = element("select");
  select.append(...models.map((name) => element("option", { value: name, textContent: name, selected: name === body.model })));
  form.append(element("label", {}, "Model ", select), element("button", { type: "submit", textContent: "Show both" }));
  const shown = element("div", { className: "versus" });
  shown.setAttribute("aria-live", "polite");
  let running = new AbortController();
  const clear = () => {
    running.abort();
    shown.replaceChildren();
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const changed = Object.fromEntries(typed.map((field) => [field.name, field.value]));
    const inputs = typeof body.inputs === "string" ? changed.inputs : changed;
    const { asked: { priors }, answer: before } = latest();
    const same = select.value === body.model; // another model may not have these priors
    running.abort();
    running = new AbortController();
    try {
      const asked = { inputs, model: select.value, truncate: false, evidence: true, ...(same && priors && { priors }) };
      const { answer, warning } = await ask("explain", asked, running.signal);
      const notes = [!same && priors && "with its own priors", warning].filter(Boolean);
      shown.replaceChildren(side("before", before, judge), side("then", answer, judge, notes));
    } catch (failure) {
      if (failure.name === "AbortError") return;
      shown.replaceChildren(element("p", { className: "refused", textContent: said(failure) }));
    }
  });
  const box = element("details", {}, element("summary", { textContent: "What if a word were another, or the model?" }), form, shown);
  return { box, clear };
}

function side(when, answer, judge, notes = []) {
  const shaded = answer.sentences.flatMap((one, i) => {
    const evidence = answer.evidence.sentences[i];
    return evidence ? [evidenceTokens(one, evidence.weights, answer.evidence.of)] : [];
  });
  const title = [`${answer.model}, ${when}`, ...notes].join(", ");
  const box = element("section", {}, element("p", { className: "key", textContent: title }), ...judge(answer), ...shaded);
  box.dataset.side = when;
  return box;
}
