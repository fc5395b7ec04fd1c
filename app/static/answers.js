// What a model answers: labels with their shares as bars, or a number.

import { element, percent } from "./dom.js";

// What each label of entailment says of a pair of sentences, and of the second one.
const VERDICTS = { entailment: "The second sentence follows from the first", neutral: "The second may be true or false", contradiction: "The second contradicts the first" };

const SECOND = { entailment: "follows (entailment)", neutral: "may be true or false (neutral)", contradiction: "is false (contradiction)" };
const SURE = { pair: 0.6, label: 0.5 }; // probability below which an answer is a guess

// The heading of an answer of this probability, of several labels.
export function heading(label, share, labels) {
  const text = ofPairs(labels) ? VERDICTS[label] : label;
  if (share >= (ofPairs(labels) ? SURE.pair : SURE.label)) return text;
  if (!ofPairs(labels)) return `Not sure: perhaps ${text}`;
  return `Not sure: perhaps ${label === "neutral" ? "the second is true, perhaps false" : `${text[0].toLowerCase()}${text.slice(1)}`}`;
}

const ofPairs = (labels) => labels.includes("entailment"); // "neutral" is a sentiment too

// [[label, share]] as bars, in bold where the share is `least` or more.
export function bars(pairs, least) {
  const box = element("div", { className: "scores" });
  const names = ofPairs(pairs.map(([label]) => label)) ? SECOND : {};
  for (const [label, share] of pairs) {
    const best = share >= least ? "best" : "";
    const bar = element("i");
    bar.style.width = `${100 * share}%`;
    box.append(
      element("span", { textContent: names[label] ?? label, className: best }),
      element("div", { className: "bar" }, bar),
      element("span", { textContent: percent(share), className: `share ${best}` }),
    );
  }
  return box;
}

export const scaled = (relatedness) => `${relatedness.toFixed(2)} on a scale of 1 to 5`;

// What the model answers, if it answers anything. `multiLabel`: a text may have several labels, or none, and each label has its
// probability; they are those of 0.5 and more, as in the library.
export function judgement({ prediction, relatedness }, multiLabel = false) {
  if (prediction) {
    const ranked = Object.entries(prediction.scores).sort(([, a], [, b]) => b - a);
    const least = multiLabel ? 0.5 : ranked[0][1];
    const likely = ranked.filter(([, share]) => share >= least).map(([label]) => label);
    const title = multiLabel ? likely.join(", ") : prediction.label && heading(prediction.label, ranked[0][1], Object.keys(prediction.scores)); // null: the model abstains
    return [element("h2", { textContent: title || "No label is probable enough" }), bars(ranked, least)];
  }
  if (relatedness == null) return [];
  const score = scaled(relatedness);
  const meter = element("meter", { min: 1, max: 5, value: relatedness });
  meter.setAttribute("aria-label", `Relatedness: ${score}`);
  return [element("h2", { textContent: `Relatedness: ${score}` }), meter];
}
