// What can be done with an answer: a link to it, files of it, and its request.

import { element } from "./dom.js";
import { asCurl, asPython } from "./requests.js";

// Characters that XML cannot hold, as a text copied from a terminal may.
const NOT_XML = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;
const WIDEST = 16_384; // pixels that a canvas may have in every browser

export function button(text, work) {
  const node = element("button", { type: "button", textContent: text });
  node.addEventListener("click", work);
  return node;
}

// A button that copies `text`, and its result next to it: the page's status may be far above.
export function copying(text, name) {
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
  const buttons = [button("Save JSON", () => save(json(), "answer.json"))];
  if (trees.length) {
    buttons.push(
      button("Save SVG", () => save(asFile(drawing(trees)), "tree.svg")),
      button("Save PNG", async () => save(await asPng(drawing(trees)), "tree.png")),
    );
  }
  const [copyLink, note] = copying(link, "link");
  return element("div", { className: "actions" }, copyLink, ...buttons, note);
}

export function save(blob, name) {
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
  const box = element("details", { className: "requests" }, element("summary", { textContent: `From a program: the request to /${path}, as curl and Python` }));
  for (const [name, code] of [["curl", asCurl(path, body)], ["Python", asPython(path, body)]]) {
    const shown = element("pre", { textContent: code, tabIndex: 0 });
    box.append(element("h3", { textContent: name }), shown, ...copying(code, name));
  }
  return box;
}
