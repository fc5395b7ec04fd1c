// A sentence's tokens as buttons, shaded by a weight or by their evidence.

import { element, percent } from "./dom.js";

const NOTHING = 0.05; // rounds to 0.0
const FAINT = { margins: 0.3, weights: 2 }; // smaller changes stay pale even where they are the largest

// What leaving each token out changes: the label's log-odds, or hundredths of a score that is no probability.
export function changes({ weights, margins }) {
  return margins ? { values: margins, faint: FAINT.margins } : { values: weights.map((weight) => 100 * weight), faint: FAINT.weights };
}

// A signed number that is read without its colour; 0.0 is neither for nor against.
const signed = (value) => `${Math.abs(value) < NOTHING ? "" : value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`;

function tint(value, most) {
  if (Math.abs(value) < NOTHING) return "transparent";
  return `rgba(var(${value < 0 ? "--against" : "--for"}), ${(0.08 + (0.5 * Math.abs(value)) / most).toFixed(3)})`;
}

// The tokens as buttons; `dress` shades each and gives what is said to screen readers after the text that is seen.
function tokenList(sentence, label, dress) {
  const list = element("ol", { className: "tokens" });
  list.setAttribute("aria-label", label);
  sentence.tokens.forEach((token, i) => {
    const button = element("button", { type: "button", textContent: token.text });
    button.dataset.token = i;
    button.classList.toggle("unknown", !token.known);
    const description = dress(button, i);
    button.setAttribute("aria-label", `${button.textContent}, ${description}${token.known ? "" : token.composed ? ", read by its spelling" : ", not in the vocabulary"}`);
    list.append(element("li", {}, button));
  });
  return list;
}

// Shaded by a weight each; the heaviest is darkest.
export function tokens(sentence, shading, name) {
  const most = d3.max(shading) || 1;
  return tokenList(sentence, `Tokens shaded by ${name}`, (button, i) => {
    button.style.borderBottomColor = `rgba(var(--weight), ${0.08 + (0.92 * shading[i]) / most})`;
    button.style.background = `rgba(var(--weight), ${(0.32 * shading[i]) / most})`;
    button.title = `${name}: ${percent(shading[i])}`;
    return `${name} ${percent(shading[i])}`;
  });
}

// Green and + for the answer, red and − against it; `evidence` as /explain gives it, or integrated gradients.
export function evidenceTokens(sentence, evidence, answered) {
  const { values, faint } = changes(evidence);
  const most = Math.max(faint, d3.max(values, Math.abs) ?? 0);
  const of = answered === "cosine" ? "the vector's direction" : answered;
  return tokenList(sentence, `Tokens with their evidence for ${of}`, (button, i) => {
    button.append(" ", element("small", { textContent: signed(values[i]) }));
    button.style.background = tint(values[i], most);
    if (Math.abs(values[i]) < NOTHING) return `neither for nor against ${of}`;
    button.style.borderBottomColor = `rgb(var(${values[i] < 0 ? "--against" : "--for"}))`;
    return `${values[i] < 0 ? "against" : "for"} ${of}`;
  });
}
