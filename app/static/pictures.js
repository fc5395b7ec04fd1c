// The pictures of an explanation, for the page and for the file of `heedful explain`.

import { element, percent } from "./dom.js";
import { heatMap } from "./heatmap.js";
import { across, hover } from "./hover.js";
import { meanings, term } from "./terms.js";
import { evidenceTokens, tokens } from "./tokens.js";
import { arcs, dye } from "./tree.js";

const FOLDED = 30; // tokens of a sentence whose tree is folded: it is far wider than a window

// A picture of each sentence, and for a pair the similarity of their tokens. `shadings` names how the tokens of each
// are shaded, if not by the first shading that there is.
export function pictures(answer, shadings = []) {
  const evidence = answer.evidence?.sentences ?? [];
  const names = answer.sentences.length === 2 ? ["First sentence", "Second sentence"] : ["Its words"];
  const drawn = answer.sentences.map((explained, i) => sentence(names[i], explained, evidence[i], answer.evidence?.of, shadings[i]));
  for (const picture of drawn) hover(picture);
  if (!answer.similarity) return drawn;
  const map = between(answer);
  across(drawn, map, answer.similarity);
  return [...drawn, map];
}

function sentence(name, explained, evidence, of, shading) {
  const words = explained.tokens.map((token) => token.text);
  const title = element("h2", { textContent: name });
  const picture = element("section", { className: "picture" });
  const shaded = element("div");
  const attention = [...explained.pooling, ...(explained.gate ?? [])].map(({ name: kind, weights }) => ({
    name: kind, draw: () => [tokens(explained, weights, kind), element("p", { className: "key" }, `The stronger its colour, the larger its weight in ${kind}. `, term(kind))],
  }));
  const signedShadings = [];
  if (evidence?.gradients) {
    const { gradients } = evidence;
    signedShadings.push({ name: "integrated gradients", draw: () => [evidenceTokens(explained, { weights: gradients.weights }, of), gradientsKey(of, gradients)] });
  }
  if (evidence) signedShadings.push({ name: "evidence", draw: () => [evidenceTokens(explained, evidence, of), evidenceKey(of, evidence, explained)] });
  const shadings = [...signedShadings, ...attention];
  const tree = element("div", { className: "scroll tree", tabIndex: 0 }, arcs(explained.tree.displacy));
  tree.setAttribute("role", "group");
  tree.setAttribute("aria-label", "Dependency tree");
  const shade = (i) => {
    shaded.replaceChildren(...shadings[i].draw());
    dye(tree, shaded);
  };
  const first = Math.max(0, shadings.findIndex(({ name: kind }) => kind === shading));
  const heading = element("div", { className: "row" }, title);
  if (shadings.length > 1) {
    const select = element("select");
    select.append(...shadings.map(({ name: kind }, i) => element("option", { value: i, textContent: kind, selected: i === first })));
    select.addEventListener("change", () => shade(select.value));
    heading.append(element("label", { className: "prior" }, "Shaded by ", select));
  }
  if (shadings.length) shade(first);
  const labels = [...new Set(explained.tree.displacy.arcs.map(({ label }) => label))];
  const grammar = element("details", { className: "grammar", open: words.length <= FOLDED }, element("summary", { textContent: "Grammar: which word belongs to which" }), tree, meanings(labels));
  const alone = of && !evidence ? [element("p", { className: "key", textContent: "There is no evidence for a single word: without it there is no text." })] : [];
  picture.append(heading, shaded, ...alone, ...(labels.length ? [grammar] : []));
  const maps = explained.maps.map(({ name: head, weights }) =>
    heatMap({ rows: weights.length === words.length ? words : weights.map(() => "sentence"), columns: words, weights, name: head }));
  if (maps.length) {
    const grid = element("div", { className: maps.length === 6 ? "maps six" : "maps" }, ...maps);
    const ranked = evidence ? rankings(evidence) : [];
    picture.append(element("details", { className: "why" }, element("summary", { textContent: "Attention: where each head looks" }), element("p", { className: "key" }, "A row is a word, its colours where it looks. ", term("heads")), ...ranked, grid));
  }
  return picture;
}

// What the colours and numbers of the evidence mean.
export function evidenceKey(of, { margins }, { tokens: words }) {
  const unknown = words.some((token) => !token.known) ? " Dashed: a word that the model does not know." : "";
  const unit = margins ? "" : of === "relatedness" ? ", in hundredths of a point" : ", in hundredths";
  const meaning = of === "cosine" ? "How far the text's meaning turns without the word" : `Green and + speak for ${of}, red and − against it: how much it would lose without the word`;
  return element("p", { className: "key" }, `${meaning}${unit}.${unknown} `, term("evidence"));
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
  return [element("p", { className: "key" }, `How well each ranks the words as the evidence does: ${text} `, term("correlation"))];
}

function between({ sentences: [first, second], similarity: cosines }) {
  const [rows, columns] = [first, second].map((sentence) => sentence.tokens.map((token) => token.text));
  const map = heatMap({
    rows, columns, weights: cosines, name: "Similarity of their words", domain: [Math.min(0, d3.min(cosines.flat())), 1], compared: true,
    format: (value) => value.toFixed(2),
  });
  return element("section", { className: "picture" }, element("div", { className: "maps" }, map));
}
