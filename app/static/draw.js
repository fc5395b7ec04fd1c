// The pictures of an answer, drawn with D3, for the page and for the file of `heedful explain`: arcs of
// the tree, heat maps, shaded tokens, bars.
// All marks of token i of a sentence light up together: `hover` links them.

const CELL = 22; // of a heat map's cell
const NUMBERED = 44; // of a cell with its number in it
const NEAR = 0.02; // cosines that are so close to the highest count as much

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export function percent(value) {
  return `${(100 * value).toFixed(1)} %`;
}

// Calls `light` with the token (its index, as text) under the pointer or focus, or null.
function watch(root, light) {
  const token = (event) => {
    const part = event.target.closest?.("[data-token], [data-row]");
    return part ? (part.dataset.token ?? part.dataset.row) : null;
  };
  for (const type of ["pointerover", "focusin"]) root.addEventListener(type, (event) => light(token(event)));
  for (const type of ["pointerleave", "focusout"]) root.addEventListener(type, () => light(null));
}

// Links everything under `root` that carries data-token (a token's index), or data-row and data-column.
export function hover(root) {
  const light = (token) => {
    for (const part of root.querySelectorAll("[data-token]")) {
      part.classList.toggle(part.tagName === "BUTTON" ? "on" : "lit", part.dataset.token === token);
    }
    for (const cell of root.querySelectorAll("[data-row]")) {
      cell.classList.toggle("lit", token !== null && (cell.dataset.row === token || cell.dataset.column === token));
    }
  };
  watch(root, light);
}

// Links the pictures of a pair: a token lights up the most similar token of the other sentence, and its line of
// the map; a cell of the map lights up its two tokens. `cosines` has a row for each token of the first sentence.
export function across(pictures, map, cosines) {
  const lines = [cosines, d3.transpose(cosines)];
  const cells = [...map.querySelectorAll(".cell")];
  const place = (cell) => [Math.floor(cells.indexOf(cell) / cosines[0].length), cells.indexOf(cell) % cosines[0].length];
  const mark = (picture, near) => {
    for (const part of picture.querySelectorAll("button[data-token], .word[data-token]")) {
      part.classList.toggle("near", near(Number(part.dataset.token)));
    }
  };
  for (const [side, picture] of pictures.entries()) {
    watch(picture, (token) => {
      const line = token === null ? [] : lines[side][token];
      const most = d3.max(line);
      mark(pictures[1 - side], (i) => line[i] >= most - NEAR);
      for (const cell of cells) cell.classList.toggle("lit", String(place(cell)[side]) === token);
    });
  }
  const point = (cell) => {
    for (const [side, picture] of pictures.entries()) mark(picture, (i) => cell !== null && place(cell)[side] === i);
    for (const one of cells) one.classList.toggle("lit", one === cell);
  };
  map.addEventListener("pointerover", (event) => point(event.target.closest(".cell")));
  map.addEventListener("pointerleave", () => point(null));
}

const isNothing = (value) => Math.abs(value) < 0.0005; // rounds to 0.0 points of a hundred

// A signed number that is read without its colour; 0.0 is neither for nor against.
export function signed(value) {
  const sign = isNothing(value) ? "" : value < 0 ? "−" : "+";
  return `${sign}${Math.abs(100 * value).toFixed(1)}`;
}

function tint(value, most) {
  if (isNothing(value)) return "transparent";
  return `rgba(var(${value < 0 ? "--against" : "--for"}), ${(0.08 + (0.5 * Math.abs(value)) / most).toFixed(3)})`;
}

const FAINT = 0.02; // smaller changes stay pale even where they are the largest
const largest = (weights) => Math.max(FAINT, d3.max(weights, Math.abs) ?? 0);

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
    .attr("x", (edge) => (from(edge) + to(edge)) / 2).attr("y", (edge) => top - 18 * levels.get(edge) - 4).text((edge) => edge.label);
  svg.append("g").selectAll("rect").data(words).join("rect").attr("class", "shade").attr("rx", 3).attr("fill", "none")
    .attr("x", (_, i) => centres[i] - widths[i] / 2 + 4).attr("y", top + 8).attr("width", (_, i) => widths[i] - 8).attr("height", 22);
  svg.append("g").selectAll("text").data(words).join("text").attr("class", "word").attr("data-token", (_, i) => i)
    .attr("text-anchor", "middle").attr("x", (_, i) => centres[i]).attr("y", top + 24).text((word) => word.text);
  return svg.node();
}

// Gives the tree's words the colours of the tokens.
function dye(tree, shaded) {
  const buttons = shaded.querySelectorAll(".tokens button");
  for (const [i, one] of tree.querySelectorAll("rect.shade").entries()) one.style.fill = buttons[i].style.background;
}

function spoken(words, edges) {
  const one = ({ start, end, label, dir }) => {
    const [child, head] = dir === "left" ? [start, end] : [end, start];
    return `${words[child].text} is ${label} of ${words[head].text}`;
  };
  return `Dependency tree: ${edges.map(one).join("; ") || "no relations"}`;
}

// Rows attend to columns; where they are `compared`, the weights are similarities, and the map lights up no tokens.
export function heatMap({ rows, columns, weights, name, domain = [0, 1], compared = false, format = percent, numbers = false }) {
  const link = !compared;
  const SIZE = numbers ? NUMBERED : CELL;
  const label = 8 * Math.min(14, d3.max(rows, (word) => word.length)) + 10;
  const head = 8 * Math.min(14, d3.max(columns, (word) => word.length)) + 10;
  const width = label + SIZE * columns.length + 2;
  const height = head + SIZE * rows.length + 2;
  // Below a number the darkest cell stays so pale that the number has a contrast of 4.5 in both themes.
  const opacity = d3.scaleLinear(domain, [0.04, numbers ? 0.46 : 1]).clamp(true);
  const read = element("p", { className: "read" });
  read.setAttribute("aria-live", "off");
  const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img").attr("aria-label", summary(name, rows, columns, weights, format, compared));
  svg.node().style.maxWidth = `${width * 1.4}px`;
  svg.node().style.minWidth = `${Math.min(width, 0.8 * width + 60)}px`; // labels stay readable: a wide map is scrolled
  const cut = (word) => (word.length > 14 ? `${[...word].slice(0, 13).join("")}…` : word); // an emoji is two of `length`
  svg.append("g").selectAll("text").data(rows).join("text").attr("class", "word").attr("font-size", 12).attr("text-anchor", "end")
    .attr("x", label - 5).attr("y", (_, i) => head + SIZE * (i + 0.68)).text(cut).attr("data-token", link && rows === columns ? (_, i) => i : null);
  svg.append("g").selectAll("text").data(columns).join("text").attr("class", "word").attr("font-size", 12)
    .attr("transform", (_, i) => `translate(${label + SIZE * (i + 0.68)},${head - 5}) rotate(-90)`).text(cut).attr("data-token", link ? (_, i) => i : null);
  const cells = weights.flatMap((line, row) => line.map((value, column) => ({ row, column, value })));
  svg.append("g").selectAll("rect").data(cells).join("rect")
    .attr("class", (cell) => (cell.value === 0 && domain[0] === 0 ? "cell none" : "cell"))
    .attr("x", (cell) => label + SIZE * cell.column).attr("y", (cell) => head + SIZE * cell.row).attr("width", SIZE - 1).attr("height", SIZE - 1)
    .attr("data-value", (cell) => cell.value)
    .attr("data-row", link ? (cell) => (rows.length === 1 ? cell.column : cell.row) : null).attr("data-column", link ? (cell) => cell.column : null)
    .each(function (cell) { if (cell.value !== 0 || domain[0] !== 0) this.style.fill = `rgba(var(--weight), ${opacity(cell.value)})`; })
    .on("click", (_, cell) => { read.textContent = `${rows[cell.row]} → ${columns[cell.column]}: ${format(cell.value)}`; })
    .on("pointerenter", (_, cell) => { read.textContent = `${rows[cell.row]} → ${columns[cell.column]}: ${format(cell.value)}`; })
    .on("pointerleave", () => { read.textContent = ""; })
    .append("title").text((cell) => `${rows[cell.row]} → ${columns[cell.column]}: ${format(cell.value)}`);
  if (numbers) {
    svg.append("g").attr("aria-hidden", "true").selectAll("text").data(cells).join("text").attr("class", "number").attr("font-size", 13)
      .attr("text-anchor", "middle").attr("x", (cell) => label + SIZE * (cell.column + 0.5)).attr("y", (cell) => head + SIZE * (cell.row + 0.6))
      .text((cell) => cell.value.toFixed(2));
  }
  const scroll = element("div", { className: "scroll", tabIndex: 0 }, svg.node());
  scroll.setAttribute("role", "group");
  scroll.setAttribute("aria-label", name);
  const figure = element("figure", {}, element("figcaption", { textContent: name }), scroll, legend(domain, format, opacity), read, table(rows, columns, weights, name, format));
  figure.dataset.map = name;
  return figure;
}

// The map's numbers for the keyboard, for screen readers and to be copied. The table is made when it is opened: it may have thousands of cells.
function table(rows, columns, weights, name, format) {
  const box = element("details", {}, element("summary", { textContent: "Table" }));
  box.addEventListener("toggle", () => {
    const label = `${name}: table`;
    const head = element("tr", {}, element("td"), ...columns.map((textContent) => element("th", { scope: "col", textContent })));
    const lines = weights.map((line, i) => element(
      "tr", {}, element("th", { scope: "row", textContent: rows[i] }), ...line.map((value) => element("td", { textContent: format(value) })),
    ));
    const made = element("table", {}, element("thead", {}, head), element("tbody", {}, ...lines));
    made.setAttribute("aria-label", label);
    const scroll = element("div", { className: "scroll", tabIndex: 0 }, made);
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

// The tokens as buttons; `dress` shades each and gives what is said to screen readers after the text that is seen.
function tokenList(sentence, label, dress) {
  const list = element("ol", { className: "tokens" });
  list.setAttribute("aria-label", label);
  sentence.tokens.forEach((token, i) => {
    const button = element("button", { type: "button", textContent: token.text });
    button.dataset.token = i;
    button.classList.toggle("unknown", !token.known);
    const said = dress(button, i);
    button.setAttribute("aria-label", `${button.textContent}, ${said}${token.known ? "" : token.composed ? ", read by its spelling" : ", not in the vocabulary"}`);
    list.append(element("li", {}, button));
  });
  return list;
}

// Shaded by a weight each; the heaviest is darkest.
export function tokens(sentence, shading, name) {
  const most = d3.max(shading) || 1;
  return tokenList(sentence, `Tokens shaded by ${name}`, (button, i) => {
    button.style.borderBottomColor = `rgba(var(--weight), ${0.08 + (0.92 * shading[i]) / most})`;
    button.style.background = `rgba(var(--weight), ${(0.32 * shading[i]) / most})`;
    button.title = `${name}: ${percent(shading[i])}`;
    return `${name} ${percent(shading[i])}`;
  });
}

// On what leaving each of them out changes: green and + for the answer, red and − against it.
export function evidenceTokens(sentence, weights, answered) {
  const most = largest(weights);
  const of = answered === "cosine" ? "the vector's direction" : answered;
  return tokenList(sentence, `Tokens with their evidence for ${of}`, (button, i) => {
    button.append(" ", element("small", { textContent: signed(weights[i]) }));
    button.style.background = tint(weights[i], most);
    if (isNothing(weights[i])) return `neither for nor against ${of}`;
    button.style.borderBottomColor = `rgb(var(${weights[i] < 0 ? "--against" : "--for"}))`;
    return `${weights[i] < 0 ? "against" : "for"} ${of}`;
  });
}

// [[label, share]] as bars, in bold where the share is `least` or more.
function bars(pairs, least) {
  const box = element("div", { className: "scores" });
  for (const [label, share] of pairs) {
    const best = share >= least ? "best" : "";
    const bar = element("i");
    bar.style.width = `${100 * share}%`;
    box.append(
      element("span", { textContent: label, className: best }),
      element("div", { className: "bar" }, bar),
      element("span", { textContent: percent(share), className: best }),
    );
  }
  return box;
}

// What the model answers, if it answers anything. `several`: a text may have several labels, or none, and each label has its
// probability; they are those of 0.5 and more, as in the library.
export function judgement({ prediction, relatedness }, several = false) {
  if (prediction) {
    const ranked = Object.entries(prediction.scores).sort(([, a], [, b]) => b - a);
    const least = several ? 0.5 : ranked[0][1];
    const likely = ranked.filter(([, share]) => share >= least).map(([label]) => label);
    const said = several ? likely.join(", ") : prediction.label; // null: the model abstains
    return [element("h2", { textContent: said || "No label is probable enough" }), bars(ranked, least)];
  }
  if (relatedness == null) return [];
  const said = `${relatedness.toFixed(2)} of 1 to 5`;
  const meter = element("meter", { min: 1, max: 5, value: relatedness });
  meter.setAttribute("aria-label", `Relatedness: ${said}`);
  return [element("h2", { textContent: `Relatedness: ${said}` }), meter];
}

// A picture of each sentence, and for a pair the similarity of their tokens. `shadings` names how the tokens of each
// are shaded, if not by the first shading that there is.
export function pictures(answer, shadings = []) {
  const evidence = answer.evidence?.sentences ?? [];
  const drawn = answer.sentences.map((one, i) => sentence(one, evidence[i], answer.evidence?.of, shadings[i]));
  for (const one of drawn) hover(one);
  if (!answer.similarity) return drawn;
  const map = between(answer);
  across(drawn, map, answer.similarity);
  return [...drawn, map];
}

function sentence(one, evidence, of, shading) {
  const words = one.tokens.map((token) => token.text);
  const picture = element("section", { className: "picture" }, element("h2", { textContent: one.text }));
  const shaded = element("div");
  const attention = [...one.pooling, ...(one.gate ?? [])].map(({ name, weights }) => ({
    name, draw: () => [tokens(one, weights, name), element("p", { className: "key", textContent: `The stronger its colour, the larger its weight in ${name}.` })],
  }));
  const signedShadings = [];
  if (evidence?.gradients) {
    const { gradients } = evidence;
    signedShadings.push({ name: "integrated gradients", draw: () => [evidenceTokens(one, gradients.weights, of), gradientsKey(of, gradients)] });
  }
  if (evidence) signedShadings.push({ name: "evidence", draw: () => [evidenceTokens(one, evidence.weights, of), key(of, one)] });
  const shadings = [...signedShadings, ...attention];
  const tree = element("div", { className: "scroll tree", tabIndex: 0 }, arcs(one.tree.displacy));
  tree.setAttribute("role", "group");
  tree.setAttribute("aria-label", "Dependency tree");
  const shade = (i) => {
    shaded.replaceChildren(...shadings[i].draw());
    dye(tree, shaded);
  };
  const first = Math.max(0, shadings.findIndex(({ name }) => name === shading));
  if (shadings.length > 1) {
    const select = element("select");
    select.append(...shadings.map(({ name }, i) => element("option", { value: i, textContent: name, selected: i === first })));
    select.addEventListener("change", () => shade(select.value));
    picture.append(element("label", { className: "prior" }, "Tokens shaded by ", select));
  }
  if (shadings.length) shade(first);
  const maps = one.maps.map(({ name, weights }) =>
    heatMap({ rows: weights.length === words.length ? words : weights.map(() => "sentence"), columns: words, weights, name }));
  picture.append(shaded, tree);
  if (maps.length) {
    const grid = element("div", { className: maps.length === 6 ? "maps six" : "maps" }, ...maps);
    const said = evidence ? rankings(evidence) : [];
    picture.append(element("details", { className: "why" }, element("summary", { textContent: "Why: the attention of each head" }), ...said, grid));
  }
  return picture;
}

// What the colours and numbers of the evidence mean.
function key(of, { tokens: words }) {
  const unknown = words.some((token) => !token.known) ? " Dashed: not in the vocabulary." : "";
  const unit = of === "relatedness" ? "hundredths of a point" : "points of a hundred";
  const said = of === "cosine" ? "+ how far the vector turns without the word." : `+ speaks for ${of}, − against it.`;
  return element("p", { className: "key", textContent: `${said} Each number is what leaving out the word changes, in ${unit}.${unknown}` });
}

// What integrated gradients are, and how sure they are.
function gradientsKey(of, { score, baseline, spread }) {
  const sure = ` Give or take ${percent(spread)}.`;
  const text = `Integrated gradients of ${of}: what each word adds on the way from no words (${baseline.toFixed(2)}) to the sentence (${score.toFixed(2)}).${sure}`;
  return element("p", { className: "key", textContent: text });
}

// How each map and weight ranks the words, compared with the evidence.
function rankings({ correlations }) {
  const known = correlations.filter(({ value }) => value !== null);
  if (!known.length) return [];
  const text = known.map(({ name, value }) => `${name} ${value.toFixed(2)}`).join(" · ");
  return [element("p", { className: "key", textContent: `Rank correlation with the size of the evidence (1: the same order, 0: none): ${text}` })];
}

function between({ sentences: [first, second], similarity: cosines }) {
  const [rows, columns] = [first, second].map((one) => one.tokens.map((token) => token.text));
  const map = heatMap({
    rows, columns, weights: cosines, name: "Similarity of their tokens", domain: [Math.min(0, d3.min(cosines.flat())), 1], compared: true,
    format: (value) => value.toFixed(2),
  });
  return element("section", { className: "picture" }, element("div", { className: "maps" }, map));
}
