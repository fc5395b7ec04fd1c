// The third tab: two sentences, compared by entailment, relatedness and similarity at once.

import { bars, heading, scaled } from "./answers.js";
import { negated, renumbered } from "./changes.js";
import { byId, element, percent } from "./dom.js";
import { PAIRS } from "./examples.js";
import { took, warned } from "./explanation.js";
import { across, hover } from "./hover.js";
import { address, remember } from "./link.js";
import { evidenceKey } from "./pictures.js";
import { ask, embed, messageOf } from "./requests.js";
import { actions, button, requests } from "./results.js";
import { term } from "./terms.js";
import { evidenceTokens } from "./tokens.js";

const ALIKE = 0.8; // cosine from which on a change is hardly seen

const [first, second] = [byId("first"), byId("second")];
const form = document.querySelector("form[data-tab=compare]");
let defaults = {};

byId("compare-tries").append(...PAIRS.map((pair) => button(pair.name, () => {
  [first.value, second.value] = [pair.first, pair.second];
  form.requestSubmit();
})));

// What all models say of a pair: {scores, relatedness, cosine, notes}; null for what no loaded model answers.
async function measures(a, b, model, truncate, signal) {
  const [nli, related, vectors] = await Promise.all([
    model && ask("nli", { premise: a, hypothesis: b, model, truncate }, signal),
    defaults.relatedness && ask("relatedness", { pairs: [{ a, b }], truncate }, signal),
    embed([a, b], defaults.embed, signal),
  ]);
  return { scores: nli ? nli.answer.scores : null, relatedness: related ? related.answer.scores[0] : null, cosine: cosineOf(vectors), notes: (nli || vectors).notes };
}

const cosineOf = ({ vectors, size }) => d3.sum(d3.range(size), (i) => vectors[i] * vectors[size + i]);
const likeliest = (scores) => Object.entries(scores).sort(([, a], [, b]) => b - a)[0];

function meter(name, value, least, most, shown, about) {
  const drawn = element("meter", { min: least, max: most, value });
  drawn.setAttribute("aria-label", `${name}: ${shown}`);
  return element("div", { className: "measure" }, element("div", { className: "row" }, element("h3", { textContent: name }), term(about)), drawn, element("strong", { textContent: shown }));
}

// Both sentences with their evidence; a word lights up the one that is most like it in the other sentence.
function linkedWords(answer) {
  const parts = answer.sentences.map((sentence, i) => {
    const evidence = answer.evidence.sentences[i];
    const words = evidence ? evidenceTokens(sentence, evidence, answer.evidence.of) : element("p", { textContent: sentence.text });
    return element("section", { className: "picture" }, element("h3", { textContent: ["First sentence", "Second sentence"][i] }), words);
  });
  for (const part of parts) hover(part);
  across(parts, null, answer.similarity);
  const weighed = answer.evidence.sentences.findIndex(Boolean);
  const key = weighed < 0 ? [] : [evidenceKey(answer.evidence.of, answer.evidence.sentences[weighed], answer.sentences[weighed])];
  return [element("h2", { textContent: "What the verdict rests on" }), ...parts, ...key, element("p", { className: "key", textContent: "Point at a word, or tap it: the words most like it in the other sentence are outlined." })];
}

// Buttons that swap the sentences, or set the second one against its denial or another number, and what each measure makes of it.
function changer(a, b, before, model, signal) {
  const body = element("tbody");
  const names = ["Change", "First → second", ...(before.scores ? ["Verdict"] : []), ...(before.relatedness === null ? [] : ["Relatedness"]), "Similarity"];
  const table = element("table", { className: "changes" }, element("thead", {}, element("tr", {}, ...names.map((textContent) => element("th", { scope: "col", textContent })))), body);
  const remark = element("p", { className: "remark", textContent: "The first button swaps the two; the others set the second sentence against a changed copy of it." });
  remark.setAttribute("role", "status");
  const row = (name, x, y, now) => element(
    "tr", {}, element("th", { scope: "row", textContent: name }), element("td", {}, element("span", { className: "pair", textContent: `${x} → ${y}`, title: `${x} → ${y}` })),
    ...(now.scores ? [element("td", { textContent: `${likeliest(now.scores)[0]} ${percent(likeliest(now.scores)[1])}` })] : []),
    ...(now.relatedness === null ? [] : [element("td", { textContent: now.relatedness.toFixed(2) })]), element("td", { textContent: now.cosine.toFixed(2) }),
  );
  body.append(row("as they are", a, b, before));
  const show = async (name, x, y) => {
    try {
      const now = await measures(x, y, model, true, signal);
      body.append(row(name, x, y, now));
      remark.textContent = remarkOn(name, before, now);
    } catch (failure) {
      if (failure.name !== "AbortError") remark.textContent = messageOf(failure);
    }
  };
  const number = renumbered(b);
  const buttons = [
    button("Swap the two", () => show("swapped", b, a)), button("Negate the second", () => show("negated", b, negated(b))),
    button("Change its number", () => show("another number", b, number)),
  ];
  if (number === null) {
    buttons[2].disabled = true;
    buttons.push(element("span", { className: "key", textContent: "The second sentence holds no number." }));
  }
  return [
    element("h2", { textContent: "What the models see, and what they miss" }), element("div", { className: "row" }, ...buttons), remark,
    element("div", { className: "scroll cue", tabIndex: 0, role: "group", ariaLabel: "Changes" }, table),
  ];
}

// What the models see of a change, and what they miss. A sentence contradicts its denial, and itself with another number.
function remarkOn(name, before, now) {
  const is = now.scores && likeliest(now.scores)[0];
  if (name === "swapped") {
    const verdict = is ? `The verdict was ${likeliest(before.scores)[0]}, and is ${is}: their order counts. ` : "";
    return `${verdict}Similarity is the same in both orders.`;
  }
  const [what, cosine] = [name === "negated" ? "denial" : "changed number", now.cosine.toFixed(2)];
  const verdict = !is ? "" : is === "contradiction" ? `The verdict sees the ${what}: contradiction. ` : `The verdict misses the ${what}: it says ${is}. `;
  return verdict + (now.cosine >= ALIKE ? `Similarity hardly sees it (${cosine}): it says what a sentence is about, less what it states.` : `Similarity falls to ${cosine}.`);
}

export const compare = {
  task: "nli",
  fits: (card) => card.kind === "nli",
  options(cards, known) {
    defaults = known;
    return cards.filter(compare.fits).map(({ name }) => ({ value: name, text: name }));
  },
  able: () => "embed" in defaults,
  async ask({ signal, question, truncate, model }) {
    const [a, b] = [first.value, second.value];
    const link = address(question, null);
    remember("compare", link);
    const place = byId("answer-compare");
    const request = { inputs: { premise: a, hypothesis: b }, model, evidence: true, truncate };
    const explained = model ? ask("explain", request, signal).catch((failure) => {
      if (failure.code !== "input_too_long" && failure.code !== "no_explanation") throw failure;
      return null; // compared without pictures
    }) : null;
    const [before, pictures] = await Promise.all([measures(a, b, model, truncate, signal), explained]);
    const label = before.scores && likeliest(before.scores)[0];
    const title = label ? heading(label, before.scores[label], Object.keys(before.scores)) : before.relatedness !== null ? `Relatedness: ${scaled(before.relatedness)}` : `Similarity: ${before.cosine.toFixed(2)}`;
    const measured = element("div", { className: "measures" },
      ...(label ? [element("div", { className: "measure" }, element("div", { className: "row" }, element("h3", { textContent: "If the first is true, the second …" }), term("entailment")), bars(Object.entries(before.scores), before.scores[label]))] : []),
      ...(before.relatedness === null ? [] : [meter("Relatedness", before.relatedness, 1, 5, scaled(before.relatedness), "relatedness")]),
      meter("Similarity", Math.max(0, before.cosine), 0, 1, before.cosine.toFixed(2), "alike"));
    const why = button("Why? Word by word", () => {
      location.hash = new URLSearchParams({ tab: "why", model, "why-text": a, "why-second": b });
    });
    const done = actions(link, pictures?.answer ?? before);
    if (pictures) done.prepend(why);
    const [path, body] = model ? ["nli", { premise: a, hypothesis: b, model }] : defaults.relatedness ? ["relatedness", { pairs: [{ a, b }] }] : ["embed", { inputs: [a, b] }];
    place.replaceChildren(
      element("h2", { textContent: title }), measured, ...warned(before.notes), ...(pictures ? linkedWords(pictures.answer) : model ? [element("p", { className: "key", textContent: "Each word is weighed in sentences of up to 128 words and punctuation marks: these are longer." })] : []),
      ...changer(a, b, before, model, signal), done, ...(pictures ? [took(pictures.timing)] : []), requests(path, body),
    );
  },
};
