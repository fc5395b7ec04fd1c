// An explanation on the page: requested with the priors that the controls show, and redrawn at each change.

import { attempt, newest } from "./attempt.js";
import { element, pictures } from "./draw.js";
import { address, remember } from "./link.js";
import { ask } from "./requests.js";
import { actions, requests, whatIf } from "./results.js";

const WAIT = 120; // milliseconds after a prior's last change before the request

// Returns what draws the answer to `body` in `place`. `question` is what the form asked, `models` are others that could
// answer it, `priors` those of a link (null: the model's), `judge` draws what an answer says, and `top` what stands above
// the pictures.
export function explanation({ tab, place, question, body, models, priors, judge, top = () => [] }) {
  let shown = null; // the request whose answer is shown, and that answer
  const other = whatIf(body, models, judge, () => shown);
  const [drawn, done, below] = [0, 1, 2].map(() => element("div"));
  const redraw = async (signal) => {
    const asked = { ...body, truncate: false, evidence: true, trust: true, ...(priors && { priors }) };
    const link = address(question, priors);
    remember(tab, link);
    const { answer, timing, warning } = await ask("explain", asked, signal);
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
    const open = drawn.querySelector("details.why")?.open ?? false;
    const shadings = [...drawn.querySelectorAll(".picture select")].map((select) => select.selectedOptions[0].text);
    shown = { asked, answer };
    other.clear();
    drawn.replaceChildren(...top(answer), trusted(answer, warning), ...pictures(answer, shadings));
    for (const why of drawn.querySelectorAll("details.why")) why.open = open;
    done.replaceChildren(actions(link, answer, [...drawn.querySelectorAll(".tree svg")]));
    below.replaceChildren(took(timing), requests("explain", asked));
  };
  return redraw;
}

// The service's warning, if it gave one.
export function warned(warning) {
  return warning ? [element("p", { className: "refused", textContent: warning })] : [];
}

// How far the answer can be trusted, in a sentence.
function trusted({ trust, sentences }, warning) {
  if (warning) return warned(warning)[0]; // beside it, the distance would reassure
  const said = [];
  const words = d3.sum(sentences, (one) => one.tokens.length);
  const unlisted = Math.round(trust.composed_words * words);
  if (unlisted) said.push(`${unlisted} of ${words} words are not in the vocabulary`);
  if (trust.typical !== null) said.push(`${(100 * trust.typical).toFixed(0)} % of the training sentences lie as far out`);
  return element("p", { className: "trust", textContent: said.join(" · ") });
}

function controls(priors, changed) {
  const box = element("fieldset", { className: "priors" }, element("legend", { textContent: "Priors" }));
  const state = { ...priors };
  if (!Object.keys(priors).length) box.append(element("span", { textContent: "This encoder has none." }));
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
    box.append(element("label", { className: "prior" }, name, input, shown));
  }
  return box;
}

export function took(timing) {
  const total = timing.find(([stage]) => stage === "total")?.[1] ?? 0;
  const fast = total < 100 ? " (under 100 ms)" : "";
  const text = timing.map(([stage, time]) => `${stage} ${time.toFixed(1)} ms`).join(" · ") + fast;
  return element("p", { className: "timing", textContent: `Took: ${text}` });
}
