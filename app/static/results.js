// What can be done with an answer: a link to it, files of it, and the same question with a word or the model changed.

import { element, evidenceTokens, judgement } from "./draw.js";
import { ask, Refused } from "./requests.js";

const fields = (tab) => [...document.querySelectorAll(`form[data-tab=${tab}] > textarea`)];

// The question is in the address, so that a copied address gives the same answer.
export function writeLink(tab) {
  const query = new URLSearchParams({ tab, model: document.getElementById(`model-${tab}`).value });
  for (const field of fields(tab)) query.set(field.id, field.value);
  history.replaceState(null, "", `#${query}`);
}

// Fills the form that the address names; its tab, or null.
export function readLink(tabs) {
  const query = new URLSearchParams(location.hash.slice(1));
  const tab = query.get("tab");
  if (!(tab in tabs)) return null;
  for (const field of fields(tab)) field.value = query.get(field.id) ?? field.value;
  const select = document.getElementById(`model-${tab}`);
  if ([...select.options].some(({ value }) => value === query.get("model"))) {
    select.value = query.get("model");
  }
  return tab;
}

export function actions(answer, place, status) {
  const button = (text, work) => {
    const made = element("button", { type: "button", textContent: text });
    made.addEventListener("click", work);
    return made;
  };
  const tree = () => place.querySelector(".tree svg");
  const copy = async () => {
    await navigator.clipboard.writeText(location.href);
    status.textContent = "Link copied.";
  };
  return element("div", { className: "actions" },
    button("Copy link", copy),
    button("Save JSON", () => save(new Blob([JSON.stringify(answer, null, 2)], { type: "application/json" }), "answer.json")),
    button("Save SVG", () => save(asSvg(tree()), "tree.svg")),
    button("Save PNG", async () => save(await asPng(tree()), "tree.png")),
  );
}

function save(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000); // when it has been written
}

// A drawing with the colours that it has here, which a file cannot take from the page's styles.
function asSvg(svg) {
  const copy = svg.cloneNode(true);
  const parts = [svg, ...svg.querySelectorAll("*")];
  for (const [i, part] of [copy, ...copy.querySelectorAll("*")].entries()) {
    const style = getComputedStyle(parts[i]);
    for (const name of ["fill", "stroke", "stroke-width", "font-family", "font-size", "font-weight"]) {
      part.setAttribute(name, style.getPropertyValue(name));
    }
    part.removeAttribute("style");
  }
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
}

async function asPng(svg) {
  const image = new Image();
  image.src = URL.createObjectURL(asSvg(svg));
  await image.decode();
  const canvas = element("canvas", { width: 2 * svg.width.baseVal.value, height: 2 * svg.height.baseVal.value });
  const context = canvas.getContext("2d");
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

// The same question with other words, or to another model: both answers side by side.
export function whatIf(body, before, models) {
  const texts = typeof body.inputs === "string" ? { inputs: body.inputs } : body.inputs;
  const form = element("form", { className: "whatif" });
  const typed = Object.entries(texts).map(([name, value]) => {
    const field = element("textarea", { rows: 1, value, required: true, name });
    form.append(element("label", {}, name === "inputs" ? "Text" : name, field));
    return field;
  });
  const select = element("select");
  select.append(...models.map((name) => element("option", { value: name, textContent: name, selected: name === before.model })));
  form.append(element("label", {}, "Model ", select), element("button", { type: "submit", textContent: "Show both" }));
  const shown = element("div", { className: "versus" });
  shown.setAttribute("aria-live", "polite");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const changed = Object.fromEntries(typed.map((field) => [field.name, field.value]));
    const inputs = typeof body.inputs === "string" ? changed.inputs : changed;
    try {
      const { answer } = await ask("explain", { inputs, model: select.value, evidence: true });
      shown.replaceChildren(side("before", before), side("then", answer));
    } catch (failure) {
      const said = failure instanceof Refused ? failure.message : "The service does not answer.";
      shown.replaceChildren(element("p", { className: "refused", textContent: said }));
    }
  });
  return element("details", {}, element("summary", { textContent: "What if a word were another, or the model?" }), form, shown);
}

function side(when, answer) {
  const shaded = answer.sentences.flatMap((one, i) => {
    const evidence = answer.evidence.sentences[i];
    return evidence ? [evidenceTokens(one, evidence.weights, answer.evidence.of)] : [];
  });
  const box = element("section", {}, element("p", { className: "key", textContent: `${answer.model}, ${when}` }), ...judgement(answer), ...shaded);
  box.dataset.side = when;
  return box;
}
