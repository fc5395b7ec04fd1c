// Labels as tags: typed, and added with Enter or a comma; removed with their button, or the last one with Backspace.

import { element } from "./dom.js";

// `place` gets the tags; `store` is the hidden field that holds them, one on each line; `changed()` is called after each change.
export function tags(place, store, changed) {
  const input = element("input", { id: "new-label", autocomplete: "off", placeholder: "add a label, press Enter" });
  const list = element("ul", { className: "tags" });
  list.setAttribute("aria-label", "Your labels");
  const label = element("label", { textContent: "Your labels" });
  label.htmlFor = input.id;
  place.replaceChildren(label, list, input);
  const read = () => store.value.split("\n").filter(Boolean);

  const draw = () => list.replaceChildren(...read().map((text) => {
    const remove = element("button", { type: "button", textContent: "×" });
    remove.setAttribute("aria-label", `Remove the label ${text}`);
    remove.addEventListener("click", () => {
      set(read().filter((other) => other !== text));
      input.focus();
    });
    return element("li", {}, element("span", { textContent: text }), remove);
  }));
  const set = (labels) => {
    store.value = [...new Set(labels.map((text) => text.trim()).filter(Boolean))].join("\n");
    draw();
    changed();
  };
  // What stands in the input becomes tags.
  const take = () => {
    const typed = input.value.split(/[,;\n]/).filter((text) => text.trim());
    input.value = "";
    if (typed.length) set([...read(), ...typed]);
    return typed.length > 0;
  };
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if ((event.key === "Enter" && input.value.trim()) || event.key === ",") {
      event.preventDefault();
      take();
    } else if (event.key === "Backspace" && !input.value) set(read().slice(0, -1));
  });
  input.addEventListener("blur", take);
  return { read, draw, set, take };
}
