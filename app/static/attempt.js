// Requests of the page: the newest question replaces the others, and a failure is shown next to its form.

import { byId, element } from "./dom.js";
import { messageOf } from "./requests.js";

const status = byId("status");
const error = byId("error");
const answered = byId("answered");
let running = new AbortController();

// The signal of the last attempt.
export const newest = () => running.signal;

// Returns the failure, or null. Then `failed` removes what does not answer this question; null: the tab's whole answer.
export async function attempt(work, tab = null, failed = null) {
  const place = tab && byId(`answer-${tab}`);
  placeStatus(tab);
  for (const stopped of document.querySelectorAll("[aria-busy]")) {
    stopped.removeAttribute("aria-busy");
    if (stopped !== place) stopped.replaceChildren(); // its tab asks again when it is chosen
  }
  place?.setAttribute("aria-busy", "true");
  running.abort();
  running = new AbortController();
  const { signal } = running;
  error.textContent = answered.textContent = "";
  status.textContent = "Asking…";
  try {
    await work(signal);
    const title = place?.querySelector("h2");
    if (title && !signal.aborted) answered.textContent = `Answer: ${title.textContent}`;
  } catch (failure) {
    if (failure.name === "AbortError") return null;
    if (failed) failed();
    else place?.replaceChildren();
    tell(failure);
    return failure;
  } finally {
    if (!signal.aborted) {
      status.textContent = "";
      place?.removeAttribute("aria-busy");
    }
  }
  return null;
}

// Shows a failure of a tab outside of an attempt, or none if it is null.
export function report(tab, failure) {
  if (failure?.name === "AbortError") return;
  error.textContent = "";
  if (!failure) return;
  placeStatus(tab);
  tell(failure);
}

// Places the messages next to the tab's form, by default to that of the tab that is shown.
const placeStatus = (tab) => document.querySelector(tab ? `form[data-tab=${tab}]` : "[role=tabpanel]:not([hidden]) form").append(status, error);

// A failure may have a `remedy`: {label, work} of a button.
function tell(failure) {
  error.textContent = messageOf(failure);
  if (failure.remedy) {
    const button = element("button", { type: "button", textContent: failure.remedy.label });
    button.addEventListener("click", failure.remedy.work);
    error.append(" ", button);
  }
  error.scrollIntoView({ block: "nearest" });
  if (failure.status === 401) askForKey();
}

function askForKey() {
  byId("key").hidden = false;
  if (document.activeElement === document.body) byId("api-key").focus(); // not while something is typed elsewhere
  for (const links of [document.querySelector("nav [href=docs]"), document.querySelector("footer")]) links.hidden = true; // a browser sends no key with a link
}
