// The same question with a word or the model changed, side by side with its answer.

import { element } from "./dom.js";
import { noted } from "./notes.js";
import { ask, messageOf } from "./requests.js";
import { evidenceTokens } from "./tokens.js";

// The same question with other words, or to another model: both answers side by side.
// `judge` draws what an answer says. `latest()` is {request, answer} on the page. `clear()` removes
// what was shown.
export function whatIf(body, models, judge, latest) {
  const texts = typeof body.inputs === "string" ? { inputs: body.inputs } : body.inputs;
  const form = element("form", { className: "whatif" });
  const typed = Object.entries(texts).map(([name, value]) => {
    const field = element("textarea", { rows: 1, value, required: true, name });
    form.append(element("label", {}, { inputs: "Text", premise: "First sentence", a: "First sentence" }[name] ?? "Second sentence", field));
    return field;
  });
  const select = element("select");
  select.append(...models.map((name) => element("option", { value: name, textContent: name, selected: name === body.model })));
  form.append(element("label", {}, "Model ", select), element("button", { type: "submit", textContent: "Show both" }));
  const shown = element("div", { className: "versus" });
  shown.setAttribute("aria-live", "polite");
  let running = new AbortController();
  const clear = () => {
    running.abort();
    shown.replaceChildren();
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const changed = Object.fromEntries(typed.map((field) => [field.name, field.value]));
    const inputs = typeof body.inputs === "string" ? changed.inputs : changed;
    const { request, answer: before } = latest();
    const same = select.value === body.model; // another model may not have these priors
    running.abort();
    running = new AbortController();
    try {
      const changedTo = { ...request, inputs, model: select.value, priors: same ? request.priors : undefined };
      const { answer, notes: about } = await ask("explain", changedTo, running.signal);
      const notes = [!same && request.priors && "with its own priors", about && noted(about)].filter(Boolean);
      shown.replaceChildren(side("before", before, judge), side("then", answer, judge, notes));
    } catch (failure) {
      if (failure.name === "AbortError") return;
      shown.replaceChildren(element("p", { className: "refused", textContent: messageOf(failure) }));
    }
  });
  const box = element("details", {}, element("summary", { textContent: "What if a word were another, or the model?" }), form, shown);
  return { box, clear };
}

function side(when, answer, judge, notes = []) {
  const shaded = answer.sentences.flatMap((sentence, i) => {
    const evidence = answer.evidence.sentences[i];
    return evidence ? [evidenceTokens(sentence, evidence, answer.evidence.of)] : [];
  });
  const title = [`${answer.model}, ${when}`, ...notes].join(", ");
  const box = element("section", {}, element("p", { className: "key", textContent: title }), ...judge(answer), ...shaded);
  box.dataset.side = when;
  return box;
}
