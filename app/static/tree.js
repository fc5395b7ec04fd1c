// The dependency tree: arcs over the words, and what their labels mean.

import { meaning } from "./terms.js";

// The dependency tree as displaCy draws it, from its `manual` structure; `dye` colours its words.
export function arcs({ words, arcs: edges }) {
  const widths = words.map((word) => Math.max(54, 9 * word.text.length + 26));
  const centres = widths.map((width, i) => d3.sum(widths.slice(0, i)) + width / 2);
  const levels = new Map();
  const sorted = [...edges].sort((a, b) => a.end - a.start - (b.end - b.start));
  for (const edge of sorted) {
    const inside = sorted.filter((other) => other !== edge && other.start >= edge.start && other.end <= edge.end && levels.has(other));
    levels.set(edge, 1 + (d3.max(inside, (other) => levels.get(other)) ?? 0));
  }
  const top = 18 * (d3.max(levels.values()) ?? 0) + 20; // a curve rises to three quarters of its control points
  const width = d3.sum(widths);
  const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${top + 40}`).attr("width", width).attr("height", top + 40)
    .attr("role", "img").attr("aria-label", spoken(words, edges));
  const groups = svg.selectAll("g").data(edges).join("g");
  const from = (edge) => centres[edge.start] + 6;
  const to = (edge) => centres[edge.end] - 6;
  const height = (edge) => top - 24 * levels.get(edge);
  const child = (edge) => (edge.dir === "left" ? edge.start : edge.end);
  groups.append("path").attr("class", "arc").attr("data-token", child)
    .attr("d", (edge) => `M${from(edge)},${top} C${from(edge)},${height(edge)} ${to(edge)},${height(edge)} ${to(edge)},${top}`);
  groups.append("path").attr("class", "head").attr("data-token", child)
    .attr("d", (edge) => {
      const x = edge.dir === "left" ? from(edge) : to(edge);
      return `M${x},${top + 2} l-4,-8 l8,0 Z`;
    });
  svg.append("g").selectAll("text").data(edges).join("text").attr("class", "relation") // over every arc
    .attr("text-anchor", "middle").attr("font-size", 11)
    .attr("x", (edge) => (from(edge) + to(edge)) / 2).attr("y", (edge) => top - 18 * levels.get(edge) - 4).text((edge) => edge.label)
    .append("title").text((edge) => meaning(edge.label));
  svg.append("g").selectAll("rect").data(words).join("rect").attr("class", "shade").attr("rx", 3).attr("fill", "none")
    .attr("x", (_, i) => centres[i] - widths[i] / 2 + 4).attr("y", top + 8).attr("width", (_, i) => widths[i] - 8).attr("height", 22);
  svg.append("g").selectAll("text").data(words).join("text").attr("class", "word").attr("data-token", (_, i) => i)
    .attr("text-anchor", "middle").attr("x", (_, i) => centres[i]).attr("y", top + 24).text((word) => word.text);
  return svg.node();
}

// Gives the tree's words the colours of the tokens.
export function dye(tree, shaded) {
  const buttons = shaded.querySelectorAll(".tokens button");
  for (const [i, shade] of tree.querySelectorAll("rect.shade").entries()) shade.style.fill = buttons[i].style.background;
}

function spoken(words, edges) {
  const spokenEdge = ({ start, end, label, dir }) => {
    const [child, head] = dir === "left" ? [start, end] : [end, start];
    return `${words[child].text} is ${label} of ${words[head].text}`;
  };
  return `Dependency tree: ${edges.map(spokenEdge).join("; ") || "no relations"}`;
}
