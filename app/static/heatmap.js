// A map of weights: rows attend to columns.

import { element, percent } from "./dom.js";

const CELL = 22; // pixels

// Rows attend to columns; where they are `compared`, the weights are similarities, and the map lights up no tokens.
export function heatMap({ rows, columns, weights, name, domain = [0, 1], compared = false, format = percent}) {
  const link = !compared;
  const label = 8 * Math.min(14, d3.max(rows, (word) => word.length)) + 10;
  const head = 8 * Math.min(14, d3.max(columns, (word) => word.length)) + 10;
  const width = label + CELL * columns.length + 2;
  const height = head + CELL * rows.length + 2;
  const opacity = d3.scaleLinear(domain, [0.04, 1]).clamp(true);
  const read = element("p", { className: "read" });
  read.setAttribute("aria-live", "off");
  const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img").attr("aria-label", summary(name, rows, columns, weights, format, compared));
  svg.node().style.maxWidth = `${width * 1.4}px`;
  svg.node().style.minWidth = `${Math.min(width, 0.8 * width + 60)}px`; // labels stay readable: a wide map is scrolled
  const cut = (word) => (word.length > 14 ? `${[...word].slice(0, 13).join("")}…` : word); // an emoji is two of `length`
  svg.append("g").selectAll("text").data(rows).join("text").attr("class", "word").attr("font-size", 12).attr("text-anchor", "end")
    .attr("x", label - 5).attr("y", (_, i) => head + CELL * (i + 0.68)).text(cut).attr("data-token", link && rows === columns ? (_, i) => i : null);
  svg.append("g").selectAll("text").data(columns).join("text").attr("class", "word").attr("font-size", 12)
    .attr("transform", (_, i) => `translate(${label + CELL * (i + 0.68)},${head - 5}) rotate(-90)`).text(cut).attr("data-token", link ? (_, i) => i : null);
  const cells = weights.flatMap((line, row) => line.map((value, column) => ({ row, column, value })));
  svg.append("g").selectAll("rect").data(cells).join("rect")
    .attr("class", (cell) => (cell.value === 0 && domain[0] === 0 ? "cell none" : "cell"))
    .attr("x", (cell) => label + CELL * cell.column).attr("y", (cell) => head + CELL * cell.row).attr("width", CELL - 1).attr("height", CELL - 1)
    .attr("data-value", (cell) => cell.value)
    .attr("data-row", link ? (cell) => (rows.length === 1 ? cell.column : cell.row) : null).attr("data-column", link ? (cell) => cell.column : null)
    .each(function (cell) { if (cell.value !== 0 || domain[0] !== 0) this.style.fill = `rgba(var(--weight), ${opacity(cell.value)})`; })
    .on("click", (_, cell) => { read.textContent = `${rows[cell.row]} → ${columns[cell.column]}: ${format(cell.value)}`; })
    .on("pointerenter", (_, cell) => { read.textContent = `${rows[cell.row]} → ${columns[cell.column]}: ${format(cell.value)}`; })
    .on("pointerleave", () => { read.textContent = ""; })
    .append("title").text((cell) => `${rows[cell.row]} → ${columns[cell.column]}: ${format(cell.value)}`);
  const scroll = element("div", { className: "scroll", tabIndex: 0 }, svg.node());
  scroll.setAttribute("role", "group");
  scroll.setAttribute("aria-label", name);
  const figure = element("figure", {}, element("figcaption", { textContent: name }), scroll, legend(domain, format, opacity), read, table(rows, columns, weights, name, format));
  figure.dataset.map = name;
  return figure;
}

// The map's numbers for the keyboard, for screen readers and to be copied. The table is created when it is opened: it may have thousands of cells.
function table(rows, columns, weights, name, format) {
  const box = element("details", {}, element("summary", { textContent: "Table" }));
  box.addEventListener("toggle", () => {
    const label = `${name}: table`;
    const head = element("tr", {}, element("td"), ...columns.map((textContent) => element("th", { scope: "col", textContent })));
    const lines = weights.map((line, i) => element(
      "tr", {}, element("th", { scope: "row", textContent: rows[i] }), ...line.map((value) => element("td", { textContent: format(value) })),
    ));
    const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...lines));
    table.setAttribute("aria-label", label);
    const scroll = element("div", { className: "scroll", tabIndex: 0 }, table);
    scroll.setAttribute("role", "group");
    scroll.setAttribute("aria-label", label);
    box.append(scroll);
  }, { once: true });
  return box;
}

// What the shades of a heat map mean.
function legend(domain, format, opacity) {
  const box = element("p", { className: "legend" }, format(domain[0]));
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const swatch = element("i");
    swatch.style.background = `rgba(var(--weight), ${opacity(domain[0] + share * (domain[1] - domain[0]))})`;
    box.append(swatch);
  }
  box.append(format(domain[1]));
  return box;
}

// Of each row its largest weight, for screen readers. What is compared with itself is most like itself: that is left out.
function summary(name, rows, columns, weights, format, compared) {
  const most = weights.map((line, i) => {
    const best = d3.maxIndex(line, (value, column) => (compared && rows === columns && column === i ? null : value));
    if (compared) return best < 0 ? rows[i] : `${rows[i]} most like ${columns[best]}, ${format(line[best])}`;
    return line[best] > 0 ? `${rows[i]} most to ${columns[best]}, ${format(line[best])}` : `${rows[i]} to nothing`;
  });
  return `${name}: ${most.join("; ")}`;
}
