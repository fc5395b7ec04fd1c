// The fourth tab: what an answer rests on, and what the model attends to on the way.

import { judgement } from "./answers.js";
import { byId, element } from "./dom.js";
import { CLASSIFIED, PAIRS } from "./examples.js";
import { explanation } from "./explanation.js";
import { button } from "./results.js";

const [text, second] = [byId("why-text"), byId("why-second")];
const AT_FIRST = [text.value, PAIRS[0].first];
let cards = [];
const card = () => cards.find(({ name }) => name === byId("model-why").value);
const SIDES = { nli: ["premise", "hypothesis"], relatedness: ["a", "b"] };
const pairs = (kind) => Object.hasOwn(SIDES, kind);

// {name, texts} of examples for the chosen model.
function examples() {
  if (!card()) return [];
  if (pairs(card().kind)) return PAIRS.map(({ name, first, second: other }) => ({ name, texts: [first, other] }));
  const kind = Object.keys(CLASSIFIED).find((label) => card().labels.includes(label)) ?? "any";
  return CLASSIFIED[kind].map((example) => ({ name: example, texts: [example] }));
}

export const why = {
  task: "explain",
  fits: (card) => "explain.onnx" in card.files,
  options(known) {
    cards = known;
    const uses = { classification: "Which label fits a text?", nli: "Does one sentence follow from another?", relatedness: "How related are two sentences?", embedding: "What is a text about?" };
    return known.filter(why.fits).map(({ name, kind }) => ({ value: name, text: name, group: uses[kind] }));
  },
  // Models of pairs read two sentences.
  chosen() {
    const single = !card() || !pairs(card().kind);
    if (single !== second.disabled && AT_FIRST.includes(text.value)) text.value = AT_FIRST[single ? 0 : 1]; // the example of the other kind
    second.disabled = single;
    byId("why-pair").hidden = second.disabled;
    byId("why-tries").replaceChildren("Try: ", ...examples().map(({ name, texts }) => button(name, () => {
      [text.value, second.value] = [texts[0], texts[1] ?? second.value];
      text.form.requestSubmit();
    })));
  },
  async ask({ signal, question, priors, truncate, model }) {
    const { kind } = card();
    const inputs = pairs(kind) ? Object.fromEntries(SIDES[kind].map((side, i) => [side, [text, second][i].value])) : text.value;
    const models = cards.filter((card) => why.fits(card) && (pairs(kind) ? card.kind === kind : !pairs(card.kind))).map(({ name }) => name);
    const judge = (answer) => {
      const drawn = judgement(answer, cards.find(({ name }) => name === answer.model).multi_label);
      return drawn.length ? drawn : [element("h2", { textContent: "This model gives no label, but the meaning as numbers: which words turn it" })];
    };
    await explanation({ tab: "why", place: byId("answer-why"), question, body: { inputs, model, truncate }, models, priors, judge })(signal);
  },
};
