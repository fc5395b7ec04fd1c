// An explanation on the page: requested with the priors that the controls show, and redrawn at each change.

import { attempt, newest } from "./attempt.js";
import { element } from "./dom.js";
import { address, remember } from "./link.js";
import { noted } from "./notes.js";
import { pictures } from "./pictures.js";
import { ask } from "./requests.js";
import { actions, requests } from "./results.js";
import { term } from "./terms.js";
import { whatIf } from "./whatif.js";

export const ORDINARY = 0.1; // share of the texts that a model learned from
const WAIT = 120; // milliseconds after a prior's last change before the request

// Returns what draws the answer to `body` in `place`. `question` is what the form asked, `models` are others that could
// answer it, `priors` those of a link (null: the model's), and `judge` draws what an answer says.
export function explanation({ tab, place, question, body, models, priors, judge }) {
  let shown = null; // the request whose answer is shown, and that answer
  const other = whatIf(body, models, judge, () => shown);
  const [drawn, done, below] = [0, 1, 2].map(() => element("div"));
  const redraw = async (signal) => {
    const request = { ...body, evidence: true, trust: true, ...(priors && { priors }) };
    const link = address(question, priors);
    remember(tab, link);
    const { answer, timing, notes } = await ask("explain", request, signal);
    if (!shown) {
      let timer;
      const changed = (settings) => {
        priors = settings;
        const before = newest();
        clearTimeout(timer);
        timer = setTimeout(() => {
          // A tab that was left meanwhile stops nothing, and asks again when it is chosen.
          if (!place.checkVisibility()) return place.closest(".answer")?.replaceChildren();
          if (newest() !== before) return; // what was asked since has these priors, or replaces this answer
          attempt(redraw, tab, () => {
            for (const part of [drawn, done, below]) part.replaceChildren(); // the controls stay, to be set otherwise
          });
        }, WAIT);
      };
      place.replaceChildren(drawn, controls(answer.priors, changed), done, other.box, below);
    }
    const open = [...drawn.querySelectorAll("details")].map((part) => part.open);
    const shadings = [...drawn.querySelectorAll(".picture select")].map((select) => select.selectedOptions[0].text);
    const again = Boolean(shown);
    shown = { request, answer };
    other.clear();
    drawn.replaceChildren(...judge(answer), trusted(answer, notes), ...pictures(answer, shadings));
    if (again) for (const [i, part] of drawn.querySelectorAll("details").entries()) part.open = open[i];
    done.replaceChildren(actions(link, answer, [...drawn.querySelectorAll(".tree svg")]));
    below.replaceChildren(took(timing), requests("explain", request));
  };
  return redraw;
}

// The warning of the service's notes, if there are any.
export function warned(notes) {
  return notes ? [element("p", { className: "refused", textContent: noted(notes) })] : [];
}

// How far the answer can be trusted, in a sentence.
export function trusted({ trust, sentences }, notes) {
  if (notes) return warned(notes)[0]; // with a warning, the distance would reassure
  const remarks = [];
  const words = d3.sum(sentences, (sentence) => sentence.tokens.length);
  const unlisted = Math.round(trust.composed_words * words);
  if (trust.typical !== null) remarks.push(`${usual(trust.typical)}: ${(100 * trust.typical).toFixed(0)} % of the texts that it learned from are as unusual, or more.`);
  if (unlisted) remarks.push(`${unlisted} of ${words} words ${unlisted === 1 ? "is" : "are"} new to it.`);
  return element("p", { className: "trust" }, `${remarks.join(" ")} `, remarks.length ? term("trust") : "");
}

// The share of texts that are as unusual or more, in words.
function usual(share) {
  if (share >= ORDINARY) return "An ordinary text for this model";
  return share >= 0.001 ? "An unusual text for this model, so its answer is less sure" : "Unlike the texts of this model, so its answer is a guess";
}

const PRIORS = { direction: "one direction only", word: "words nearby", dependency: "words near in grammar", alpha: "how strongly" };

function controls(priors, changed) {
  const box = element("fieldset", { className: "priors" }, element("legend", { textContent: "What attention prefers" }));
  const state = { ...priors };
  if (!Object.keys(priors).length) box.append(element("span", { textContent: "This model has nothing of the kind to switch off." }));
  for (const [name, value] of Object.entries(priors)) {
    const slider = typeof value === "number";
    const input = element("input", slider ? { type: "range", min: 0, max: Math.max(4, value), step: 0.05, value } : { type: "checkbox", checked: value });
    input.dataset.prior = name;
    const shown = element("output", { textContent: slider ? value.toFixed(2) : "" });
    input.addEventListener("input", () => {
      state[name] = slider ? Number(input.value) : input.checked;
      if (slider) shown.textContent = state[name].toFixed(2);
      changed({ ...state });
    });
    box.append(element("span", { className: "prior" }, element("label", { className: "prior" }, PRIORS[name] ?? name, input, shown), term(name)));
  }
  return box;
}

const STAGES = { parse: "reading the text", queue: "waiting", inference: "the model" };

// The time of the answer, from the Server-Timing header.
export function took(timing) {
  const total = timing.find(([stage]) => stage === "total")?.[1] ?? 0;
  const stages = timing.filter(([stage]) => Object.hasOwn(STAGES, stage)).map(([stage, time]) => `${STAGES[stage]} ${time.toFixed(1)}`);
  return element("p", { className: "timing", textContent: `Answered in ${total.toFixed(0)} ms (${stages.join(", ")}).` });
}
