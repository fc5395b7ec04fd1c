// Similarities of every two of up to 150 texts as one square that is seen whole.

import { element } from "./dom.js";

const SIDE = 640; // pixels of the square, at most
const NUMBERS = 34; // pixels of a cell that holds its number

// `rows` are cosines, line by line.
export function matrix(texts, rows, name) {
  const canvas = element("canvas");
  const frame = element("div", { className: "square", tabIndex: 0 }, canvas);
  frame.setAttribute("role", "group");
  frame.setAttribute("aria-label", `${name}. The arrow keys go from cell to cell.`);
  const read = element("p", { className: "read", textContent: "Point at a cell, or tap it." });
  const count = texts.length;
  let lit = null;

  const paint = () => {
    const side = Math.min(frame.clientWidth, SIDE);
    if (!side) return;
    const cell = side / count;
    const sharp = devicePixelRatio;
    [canvas.width, canvas.height] = [side * sharp, side * sharp];
    canvas.style.width = canvas.style.height = `${side}px`;
    const context = canvas.getContext("2d");
    context.scale(sharp, sharp);
    const style = getComputedStyle(frame);
    const weight = style.getPropertyValue("--weight");
    const least = d3.min(rows, (row) => d3.min(row));
    const opacity = d3.scalePow([least, 1], [0.03, cell >= NUMBERS ? 0.46 : 1]).exponent(1.6); // most cosines are low
    context.font = "13px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    rows.forEach((row, i) => row.forEach((value, j) => {
      context.fillStyle = `rgba(${weight}, ${opacity(value)})`;
      context.fillRect(j * cell, i * cell, cell - (cell > 8 ? 1 : 0), cell - (cell > 8 ? 1 : 0));
      if (cell < NUMBERS) return;
      context.fillStyle = style.getPropertyValue("--ink");
      context.fillText(value.toFixed(2), (j + 0.5) * cell, (i + 0.5) * cell);
    }));
    if (!lit) return;
    context.strokeStyle = style.getPropertyValue("--mark");
    context.lineWidth = 2;
    context.strokeRect(lit[1] * cell, lit[0] * cell, cell, cell);
  };
  const light = (cell) => {
    lit = cell;
    read.textContent = cell ? `${rows[cell[0]][cell[1]].toFixed(3)}: ${cell[0] + 1} “${texts[cell[0]]}” and ${cell[1] + 1} “${texts[cell[1]]}”` : "Point at a cell, or tap it.";
    requestAnimationFrame(paint);
  };
  const under = (event) => {
    const { left, top, width } = canvas.getBoundingClientRect();
    const [i, j] = [event.clientY - top, event.clientX - left].map((offset) => Math.floor((offset / width) * count));
    return i >= 0 && j >= 0 && i < count && j < count ? [i, j] : null;
  };
  for (const type of ["pointermove", "click"]) frame.addEventListener(type, (event) => light(under(event)));
  frame.addEventListener("keydown", (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    light(lit ? lit.map((at, axis) => (at + step[axis] + count) % count) : [0, 0]);
  });
  frame.addEventListener("focus", () => read.setAttribute("aria-live", "polite"));
  new ResizeObserver(paint).observe(frame);
  new MutationObserver(paint).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  const box = element("figure", { className: "matrix" }, element("figcaption", { textContent: name }), frame, element("p", { className: "key", textContent: "The stronger the colour, the more alike. Both sides have the same texts, those of a group together." }), read);
  box.dataset.map = name;
  return box;
}
