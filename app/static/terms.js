// Words of the field, each with a short explanation that opens on a tap.

import { element } from "./dom.js";

const ATTENTION = "It says where the model looks, which is not always what its answer rests on: for that, see the evidence.";
const TERMS = {
  score: ["How good the model is", "Measured on texts that it did not learn from; the name is that of their collection. “Right for 90 of 100 texts”: as often as that it gives the label that people gave. “Agrees with people at 0.86 of 1”: its numbers rise and fall with people's judgements, 1 is always and 0 is not at all. On texts of another kind it is less good."],
  map: ["How the map is drawn", "The model turns each text into a list of some hundred numbers; texts of like meaning have like lists. The map shows the two directions in which these texts differ most, so some neighbours on it are farther apart than they look. Colours are groups of like texts, named by the words that set them apart. (The field says: vectors, principal components, k-means.)"],
  closest: ["How the list is made", "“Alike” compares the meaning of your question with that of the text: 1 is the same, about 0 is nothing in common. Compare the numbers of one list with each other: what counts as high depends on the texts. Marked words, or parts of a long text, made the match: the page leaves each out in turn, and without them the text would be clearly farther from your question. (The field says: the cosine of two vectors.)"],
  alike: ["How alike two texts are", "1 is the same meaning, about 0 is nothing in common. Compare the numbers of one list with each other: what counts as high depends on the texts. (The field says: the cosine of two vectors.)"],
  same: ["The same or the opposite", "A second model reads both texts as a pair: does each follow from the other, or does each deny the other? It is said only where the model gives 70 % or more in both directions, of texts that are close. It learned from descriptions of scenes: take it as a hint."],
  "labels of your own": ["Labels without training", "Each label is made into sentences (“This example is ….”, “The topic is ….”). A label's score comes from how alike text and sentences are, and from whether the first sentence follows from the text. The labels share 100 % even if none fits: look at “None of these” as well, which is how likely that is. Labels of a few words are told apart better than single ones."],
  entailment: ["Does the second follow?", "If the first sentence is true, is the second true too? Yes: it follows (entailment). No: it is false (contradiction). One cannot know: neutral. The order of the two sentences counts."],
  relatedness: ["Relatedness", "How much two sentences have to do with each other, from 1 (nothing) to 5 (the same), as people judged in the SICK data. A denial is related to what it denies."],
  evidence: ["What the answer rests on", "The model answers again without each word. +0.7 means that the word doubles the odds of the answer, +2.3 makes them ten times as high; − lowers them in the same way. So words differ also where the answer is 100 % sure. All words act together: the numbers do not add up. (The field says: log-odds, ln(p / (1 − p)).)"],
  correlation: ["Attention and evidence", "Whether attention ranks the words as the evidence does: 1 is the same order, 0 is no relation. Near 0, that picture does not show what the answer rests on. (The field says: rank correlation.)"],
  heads: ["Attention", `The model reads a sentence with several heads at once: each decides how much every word takes from every other one. “Forward” heads look back to earlier words, “backward” heads to later ones; “word distance” prefers words that stand close, “dependency distance” words that belong together in the grammar. ${ATTENTION}`],
  "attentive pooling": ["Attentive pooling", `How much each word gives to the meaning of the whole sentence. ${ATTENTION}`],
  "max pooling": ["Max pooling", `The sentence is a list of numbers; each is the largest that a word has there. The weight is the share of numbers that come from the word. ${ATTENTION}`],
  "fusion gate": ["Fusion gate", "How much of each word's own meaning is kept, against what it took from other words: 0 to 1."],
  direction: ["One direction only", "Some heads see only the words before, the others only the words after. Switched off, all see all."],
  word: ["Words nearby", "Words that stand close together count more for each other."],
  dependency: ["Words near in grammar", "Words that belong together in the grammar count more for each other, as a verb and its subject."],
  alpha: ["How strongly", "How much the distance counts: 0 not at all; the larger, the more the model looks at close words alone."],
  trust: ["How ordinary the text is", "The share of the texts that the model learned from which are as unusual as this one, or more. Near 0 %, the model has not seen the like: do not rely on its answer."],
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
  const [title, explanation] = TERMS[name];
  opened += 1;
  const box = element("div", { id: `term-${opened}`, className: "term", popover: "auto" }, element("strong", { textContent: title }), element("p", { textContent: explanation }));
  const button = element("button", { type: "button", className: "explains", textContent: text, popoverTargetElement: box });
  button.setAttribute("aria-label", `${text}: ${title}`);
  box.addEventListener("beforetoggle", () => {
    const { left, bottom } = button.getBoundingClientRect();
    box.style.left = `${Math.max(8, Math.min(left, innerWidth - 340))}px`;
    box.style.top = `${bottom + 4}px`;
  });
  box.addEventListener("toggle", () => { // now it has a height
    const { top, height } = box.getBoundingClientRect();
    box.style.top = `${Math.max(8, Math.min(top, innerHeight - height - 8))}px`;
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
