// Why a text matches a question: the words that brought it near, and whether it says the same or the opposite.

import { element } from "./dom.js";
import { ask, embed } from "./requests.js";
import { term } from "./terms.js";

const WORDS = 40; // of a text whose words are left out one by one
const SHARE = 0.45; // of the largest fall of the cosine, from which on a word is marked
const LEAST = 0.01; // falls of the cosine that are none
const JUDGED = 5; // texts that are compared by entailment
const SURE = 0.7; // probability in both directions

// Of each text its parts, those words marked without which it would be farther from the question. Each word is left out in turn.
export async function evidenceOfMatch(texts, hits, query, model, signal) {
  const split = texts.map((text) => text.split(/(\s+)/));
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

// For each of the first texts a remark, or null: both entail each other, or contradict each other.
export async function relations(question, texts, signal) {
  const judged = texts.slice(0, JUDGED);
  return judgePairs(judged.map((text) => [question, text]), signal);
}

export async function judgePairs(pairs, signal) {
  if (!pairs.length) return [];
  const both = pairs.flatMap(([a, b]) => [{ premise: a, hypothesis: b }, { premise: b, hypothesis: a }]);
  let results;
  try {
    ({ answer: { results } } = await ask("nli", { pairs: both, truncate: true }, signal));
  } catch (failure) {
    if (failure.status !== 404) throw failure;
    return []; // no loaded model judges pairs
  }
  return pairs.map((_, i) => {
    const sure = (label) => Math.min(...[0, 1].map((side) => results[2 * i + side].scores[label])) >= SURE;
    if (sure("entailment")) return element("span", { className: "same" }, "says the same ", term("same"));
    return sure("contradiction") ? element("span", { className: "opposite" }, "says the opposite ", term("same")) : null;
  });
}
