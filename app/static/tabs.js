// Tabs as the ARIA practices define them: arrow keys move, one tab stop. And the page's colours.

import { byId } from "./dom.js";

export const tabs = [...document.querySelectorAll("[role=tab]")];
export const nameOf = (tab) => tab.id.slice("tab-".length);
export const shown = () => tabs.find((tab) => tab.getAttribute("aria-selected") === "true");

export function show(tab) {
  for (const other of tabs) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", chosen);
    other.tabIndex = chosen ? 0 : -1;
    byId(other.getAttribute("aria-controls")).hidden = !chosen;
  }
}

// `choose(tab)` is called when the user takes a tab.
export function onChoice(choose) {
  for (const tab of tabs) {
    tab.addEventListener("click", () => {
      tab.focus(); // Safari does not
      choose(tab);
    });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length].click();
    });
  }
}

const theme = byId("theme");
function paint() {
  if (theme.value === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}
try {
  theme.value = localStorage.getItem("theme");
} catch {
  // A browser that keeps no site data does not remember the colours.
}
theme.value ||= "auto"; // nothing is stored, or a value of another program at this address
paint();
theme.addEventListener("change", () => {
  paint();
  try {
    localStorage.setItem("theme", theme.value);
  } catch {
    // As above.
  }
});
