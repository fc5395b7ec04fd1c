// Why a text matches a question: the words that brought it near, and whether it says the same or the opposite.

import { element } from "./dom.js";
import { ask, embed } from "./requests.js";
import { term } from "./terms.js";

const WORDS = 40; // of a text whose words are left out one by one; of a longer one its clauses are
const CLAUSE = /(?<=[.,;:!?])(\s+)/;
const SHARE = 0.5; // of the largest fall of the cosine, from which on a word is marked
const LEAST = 0.01; // falls of the cosine that are none
const JUDGED = 5; // texts that are compared by entailment
const CLOSE = 0.7; // cosine of texts that are about the same: others can neither say the same nor the opposite
const SURE = 0.7; // probability in both directions
const QUESTION = /[?？؟]["'”’»)\]\s]*$/; // the end of a question: models of entailment learned from statements

// Of each text its parts, those words or clauses marked without which it would be farther from the question. Each is left out in turn.
export async function evidenceOfMatch(texts, hits, query, model, signal) {
  const split = texts.map((text) => text.split(text.split(/\s+/).length > WORDS ? CLAUSE : /(\s+)/));
  const words = split.map((parts) => parts.flatMap((part, i) => (part.trim() ? [i] : [])));
  const shorter = texts.flatMap((_, t) => (words[t].length < 2 || words[t].length > WORDS ? [] : words[t].map((gone) => ({ t, gone, text: split[t].filter((__, i) => i !== gone).join("").trim() }))));
  if (!shorter.length) return split;
  const { vectors, size } = await embed(shorter.map(({ text }) => text), model, signal);
  const falls = shorter.map(({ t }, row) => {
    let cosine = 0;
    for (let i = 0; i < size; i++) cosine += query[i] * vectors[row * size + i];
    return hits[t][1] - cosine;
  });
  const most = texts.map((_, t) => d3.max(falls, (fall, row) => (shorter[row].t === t ? fall : null)));
  const marked = new Set(shorter.flatMap(({ t, gone }, row) => (falls[row] >= Math.max(LEAST, SHARE * most[t]) ? [`${t} ${gone}`] : [])));
  return split.map((parts, t) => parts.map((part, i) => (marked.has(`${t} ${i}`) ? element("mark", { textContent: part }) : part)));
}

// For each of the first [text, cosine], if they are close, a remark, or null: both entail each other, or contradict each other.
export async function relations(question, hits, signal) {
  const judged = hits.slice(0, JUDGED).filter(([, cosine]) => cosine >= CLOSE);
  return judgePairs(judged.map(([text]) => [question, text]), signal);
}

let judge = null; // the model that judges pairs of texts, if one is loaded

export function judgeBy(model) {
  judge = model ?? null;
}

// A remark for each pair, or null; two texts that are equal need no model, and no question is said to be the opposite of a text.
export async function judgePairs(pairs, signal) {
  const equal = ([a, b]) => a.trim() === b.trim();
  const different = pairs.filter((pair) => !equal(pair));
  const both = different.flatMap(([a, b]) => [{ premise: a, hypothesis: b }, { premise: b, hypothesis: a }]);
  const { answer: { results } } = both.length && judge ? await ask("nli", { pairs: both, model: judge, truncate: true }, signal) : { answer: { results: [] } };
  return pairs.map((pair) => {
    if (equal(pair)) return element("span", { className: "same", textContent: "the same text" });
    const sides = results.slice(2 * different.indexOf(pair)).slice(0, 2);
    const sure = (label) => sides.length && Math.min(...sides.map(({ scores }) => scores[label])) >= SURE;
    if (sure("entailment")) return element("span", { className: "same" }, "seems to say the same ", term("same"));
    return sure("contradiction") && !pair.some((text) => QUESTION.test(text)) ? element("span", { className: "opposite" }, "seems to say the opposite ", term("same")) : null;
  });
}
