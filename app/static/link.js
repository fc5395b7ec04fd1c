// The question in the address, so that a copied address gives the same answer.

const PRIOR = "prior."; // begins the name of each prior, as in prior.alpha=4

const links = {}; // the address of each tab's last question

const fields = (tab) => [...document.querySelectorAll(`form[data-tab=${tab}] [data-field]`)];

// The question in the form of a tab.
export function typed(tab) {
  const question = new URLSearchParams({ tab, model: document.getElementById(`model-${tab}`).value });
  for (const field of fields(tab)) {
    if (field.value && !field.disabled) question.set(field.id, field.value);
  }
  return question;
}

// The address of a question with these priors; null for those of the model.
export function address(question, priors) {
  const query = new URLSearchParams(question);
  for (const [name, value] of Object.entries(priors ?? {})) query.set(PRIOR + name, value);
  return new URL(`#${query}`, location.href).href;
}

// Puts the address of the tab's question into the address bar.
export function remember(tab, link) {
  links[tab] = link;
  history.replaceState(null, "", link);
}

export function recall(tab) {
  if (links[tab]) history.replaceState(null, "", links[tab]);
}

// Fills the form that the address names: {tab, question, priors, missing}, or null. `missing` is a model that is not loaded.
export function readLink(tabs) {
  const query = new URLSearchParams(location.hash.slice(1));
  const tab = query.get("tab");
  if (!Object.hasOwn(tabs, tab)) return null;
  delete links[tab];
  for (const field of fields(tab)) field.value = query.get(field.id) ?? field.value;
  const select = document.getElementById(`model-${tab}`);
  const model = query.get("model") ?? select.value;
  const missing = [...select.options].some(({ value }) => value === model) ? null : model;
  if (missing === null) select.value = model;
  select.dispatchEvent(new Event("input")); // its card is shown
  const question = typed(tab);
  const priors = [...query].filter(([name]) => name.startsWith(PRIOR)).map(([name, value]) => [name.slice(PRIOR.length), read(value)]);
  return { tab, question, priors: priors.length ? Object.fromEntries(priors) : null, missing };
}

// A prior is a switch or a number. Anything else stays a text, which the service refuses: as NaN it would be null in JSON, no prior.
function read(value) {
  if (value === "true" || value === "false") return value === "true";
  return value.trim() && Number.isFinite(Number(value)) ? Number(value) : value;
}
