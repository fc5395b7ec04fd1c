// What the page does to ask: the newest question wins, and errors are shown in the service's words.

import { said } from "./requests.js";

const byId = (id) => document.getElementById(id);
const status = byId("status");
const error = byId("error");
const answered = byId("answered");
let running = new AbortController();

// The signal of what was attempted last.
export const newest = () => running.signal;

// Returns the failure, or null. Then `failed` removes what does not answer this question; null: the tab's whole answer.
export async function attempt(work, tab = null, failed = null) {
  const place = tab && byId(`answer-${tab}`);
  if (tab) document.querySelector(`form[data-tab=${tab}]`).append(status, error); // next to what they are about
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
    if (place && !signal.aborted) answered.textContent = `Answer: ${place.querySelector("h2").textContent}`;
  } catch (failure) {
    if (failure.name === "AbortError") return null;
    if (failed) failed();
    else place?.replaceChildren();
    error.textContent = said(failure);
    error.scrollIntoView({ block: "nearest" });
    if (failure.status === 401) askForKey();
    return failure;
  } finally {
    if (!signal.aborted) {
      status.textContent = "";
      place?.removeAttribute("aria-busy");
    }
  }
  return null;
}

function askForKey() {
  byId("key").hidden = false;
  if (document.activeElement === document.body) byId("api-key").focus(); // not while something is typed elsewhere
  document.querySelector("nav [href=docs]").hidden = true; // a browser sends no key with a link
}
