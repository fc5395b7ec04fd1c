// Pairs of texts that are almost the same, the closest first; the words that only one of the two has are marked.

import { element } from "./dom.js";
import { MOST_PAIRS } from "./geometry.js";
import { judgePairs } from "./matches.js";

const SHOWN = 30;

const spelled = (word) => word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");

// A text, with the words marked that the other one does not have.
function compared(text, other) {
  const there = new Set(other.split(/\s+/).map(spelled));
  const parts = text.split(/(\s+)/).map((part) => (part.trim() && !there.has(spelled(part)) ? element("mark", { textContent: part }) : part));
  return element("span", { dir: "auto" }, ...parts);
}

export function duplicates() {
  const summary = element("summary", { textContent: "Near-duplicates" });
  const slider = element("input", { type: "range", min: 0.6, max: 0.99, step: 0.01, value: 0.9 });
  const shown = element("output");
  const list = element("ol", { className: "pairs" });
  const about = element("p", { className: "key" });
  const box = element("details", { className: "wide" }, summary, element("label", { className: "prior" }, "At least this much alike ", slider, shown), about, list);
  let [texts, pairs, running] = [[], null, new AbortController()];

  const draw = async () => {
    running.abort();
    running = new AbortController();
    const least = Number(slider.value);
    shown.textContent = least.toFixed(2);
    if (!pairs) {
      summary.textContent = "Near-duplicates (being counted)";
      about.textContent = "";
      list.replaceChildren();
      return;
    }
    const close = pairs.filter(([, , cosine]) => cosine >= least);
    const count = close.length === MOST_PAIRS ? `${MOST_PAIRS} and more` : close.length;
    summary.textContent = `Near-duplicates (${count})`;
    const first = close.slice(0, SHOWN);
    about.textContent = !first.length ? `No two texts are ${shown.textContent} alike or more: move the slider to the left.`
      : `${first.length < close.length ? `The first ${SHOWN} of ${count} pairs. ` : ""}Marked: words that only one of the two has.`;
    list.replaceChildren(...first.map(([i, j, cosine]) => element("li", {}, compared(texts[i], texts[j]), compared(texts[j], texts[i]), element("p", { className: "meta", textContent: `${cosine.toFixed(2)} alike` }))));
    if (!box.open) return;
    try {
      const judgements = await judgePairs(first.map(([i, j]) => [texts[i], texts[j]]), running.signal);
      judgements.forEach((judgement, k) => judgement && list.children[k].lastChild.append(" · ", judgement));
    } catch (failure) {
      if (failure.name !== "AbortError") throw failure;
    }
  };
  slider.addEventListener("input", draw);
  box.addEventListener("toggle", () => box.open && draw());
  return {
    box,
    // `closest` null: they are not known yet.
    show(newTexts, closest) {
      [texts, pairs] = [newTexts, closest];
      draw();
    },
  };
}
