// Words of the field, each with a short explanation that opens on a tap.

import { element } from "./dom.js";

const ATTENTION = "It says where the model looks, which is not always what its answer rests on: for that, see the evidence.";
const TERMS = {
  map: ["How the map is drawn", "Each text is a vector of some hundred numbers; texts of like meaning have like vectors. The map shows the two directions in which the texts differ most (principal components), so some neighbours on it are farther apart than they look. Colours are clusters of like texts (k-means), named by their most telling words."],
  closest: ["How the list is made", "The number is the cosine of two vectors, that of your question and that of the text: 1 is the same, about 0 is nothing in common. Compare the numbers of one list with each other: what counts as high depends on the texts. Marked words, or clauses of a long text, made the match: the page leaves each out in turn, and without them the text would be clearly farther from your question."],
  alike: ["How alike two texts are", "The cosine of their vectors: 1 is the same, about 0 is nothing in common. Compare the numbers of one list with each other: what counts as high depends on the texts."],
  same: ["The same or the opposite", "A second model reads both texts as a pair: does each follow from the other, or does each deny the other? It is said only where the model gives 70 % or more in both directions, of texts that are close. It learned from descriptions of scenes: take it as a hint."],
  "labels of your own": ["Labels without training", "Each label is made into a sentence (“This example is ….”). A label's score comes from how alike text and sentence are, and from whether the text entails the sentence. “None of these” is the probability that no label fits."],
  entailment: ["Entailment", "If the first sentence is true, is the second true too? “Entailment”: yes. “Contradiction”: no, it is false. “Neutral”: one cannot know. The order of the two sentences counts."],
  relatedness: ["Relatedness", "How much two sentences have to do with each other, from 1 (nothing) to 5 (the same), as people judged in the SICK data. A denial is related to what it denies."],
  evidence: ["Evidence", "What the answer rests on: the model answers again without each word. Numbers are log-odds, ln(p / (1 − p)): +0.7 doubles the odds of the answer, +2.3 makes them ten times as high. They differ also where the answer is 100 % sure. All words act together, so they do not add up."],
  correlation: ["Rank correlation", "Whether attention ranks the words as the evidence does: 1 is the same order, 0 is no relation. Near 0, that picture does not show what the answer rests on."],
  heads: ["Heads", `Each head computes how much every word takes from every other one; the results are joined. “Forward” heads look back to earlier words, “backward” heads to later ones; they prefer words that are close in the sentence, or in the grammar. ${ATTENTION}`],
  "attentive pooling": ["Attentive pooling", `How much each word gives to the vector of the whole sentence. ${ATTENTION}`],
  "max pooling": ["Max pooling", `Of each number of the sentence's vector the largest among the words is taken; the weight is the share of numbers that come from the word. ${ATTENTION}`],
  "fusion gate": ["Fusion gate", "How much of each word's own meaning is kept, against what it took from other words: 0 to 1."],
  direction: ["Prior: direction", "The forward heads see only earlier words, the backward heads only later ones. Switched off, all see all."],
  word: ["Prior: word distance", "Words that stand close together count more for each other."],
  dependency: ["Prior: grammar", "Words that are close in the dependency tree count more for each other."],
  alpha: ["Prior: alpha", "How strongly distance counts: 0 not at all; the larger, the more a head looks at close words alone."],
  trust: ["How usual the text is", "The share of the texts that the model learned from which are at least as unusual as this one. Near 0 %, the model has not seen the like."],
};

// Relations of Universal Dependencies.
const RELATIONS = {
  acl: "clause that describes a noun", advcl: "clause that says when, why or how", advmod: "adverb", amod: "adjective", appos: "second name for the same", aux: "auxiliary verb",
  case: "preposition, or 's", cc: "“and”, “or”, “but”", ccomp: "clause as object", clf: "classifier", compound: "part of a compound", conj: "joined by “and” or the like", cop: "form of “be”",
  csubj: "clause as subject", dep: "other relation", det: "article or the like", discourse: "interjection", dislocated: "moved to the edge", expl: "“there” or “it” without a meaning",
  fixed: "part of a fixed phrase", flat: "part of a name", goeswith: "rest of a split word", iobj: "indirect object", list: "item of a list", mark: "“that”, “if”, “to”", nmod: "noun that describes a noun",
  nsubj: "subject", nummod: "number", obj: "object", obl: "noun that says when, where or how", orphan: "left over where a verb is left out", parataxis: "clause put next to another", punct: "punctuation",
  reparandum: "corrected slip", root: "main word", vocative: "the one who is spoken to", xcomp: "clause without a subject", pass: "passive", prt: "particle of a verb", poss: "possessive", relcl: "relative clause",
  tmod: "time", predet: "“all” and the like before an article", npmod: "noun as adverb", agent: "“by” of a passive",
};

let opened = 0;

// A small button that explains the term; nothing for one that needs no explanation.
export function term(name, text = "?") {
  if (!Object.hasOwn(TERMS, name)) return "";
  const [title, said] = TERMS[name];
  opened += 1;
  const box = element("div", { id: `term-${opened}`, className: "term", popover: "auto" }, element("strong", { textContent: title }), element("p", { textContent: said }));
  const button = element("button", { type: "button", className: "explains", textContent: text, popoverTargetElement: box });
  button.setAttribute("aria-label", `${text}: ${title}`);
  box.addEventListener("beforetoggle", () => {
    const { left, bottom } = button.getBoundingClientRect();
    box.style.left = `${Math.max(8, Math.min(left, innerWidth - 340))}px`;
    box.style.top = `${Math.max(8, Math.min(bottom + 4, innerHeight - 260))}px`;
  });
  return element("span", { className: "explained" }, button, box);
}

// What the label of a tree's arc means.
export const meaning = (label) => label.split(":").map((part) => RELATIONS[part.toLowerCase()] ?? part).join(", ");

export function meanings(labels) {
  const list = element("dl");
  for (const label of labels.sort()) list.append(element("dt", { textContent: label }), element("dd", { textContent: meaning(label) }));
  return element("details", {}, element("summary", { textContent: "What the labels mean" }), list);
}
