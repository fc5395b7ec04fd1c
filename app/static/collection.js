// The user's texts: pasted, or in a file that is chosen or dropped.

import { background } from "./background.js";
import { counted, element } from "./dom.js";

const MOST_BYTES = 20 * 2 ** 20;

// A row of buttons under which texts are given; `use({name, texts, rows, columns, column})` gets them, `column` is the index of the texts'. `say` shows what is wrong, or nothing.
export function collection(place, id, use, say) {
  const shown = element("span", { className: "collected" });
  const paste = element("button", { type: "button", textContent: "Paste your own texts" });
  const file = element("input", { type: "file", accept: ".txt,.csv,.jsonl,.ndjson", className: "unseen", id: `${id}-file` });
  const open = element("label", { className: "button", textContent: "Open a file" });
  open.htmlFor = file.id;
  const column = element("select");
  const columns = element("label", { className: "prior", hidden: true }, "Column ", column);
  const field = element("textarea", { id: `${id}-lines`, rows: 6, placeholder: "One text on each line", dir: "auto" });
  const label = element("label", { textContent: "Texts, one on each line" });
  label.htmlFor = field.id;
  const take = element("button", { type: "button", textContent: "Use these texts" });
  const editor = element("div", { className: "editor", hidden: true }, label, field, take);
  paste.setAttribute("aria-expanded", "false");
  let table = null;

  const useColumn = () => {
    const { name, rows, total } = table;
    const filled = rows.filter((row) => row[column.value]);
    const cut = total > rows.length ? `: the first ${rows.length.toLocaleString("en")} of ${total.toLocaleString("en")}` : "";
    shown.textContent = `${counted(filled.length, "text")} from ${name}${cut}`;
    columns.hidden = table.columns.length < 2;
    use({ name, columns: table.columns, column: Number(column.value), rows: filled, texts: filled.map((row) => row[column.value]) });
  };
  const read = async (name, content) => {
    say(null);
    try {
      table = { name, ...(await background("read", { name: name === "your lines" ? "lines.txt" : name, content })) };
    } catch (failure) {
      return say(failure);
    }
    column.replaceChildren(...table.columns.map((text, i) => element("option", { value: i, textContent: text, selected: i === table.column })));
    if (editor.contains(document.activeElement)) paste.focus();
    toggle(false);
    return useColumn();
  };
  const readFile = async (chosen) => {
    if (chosen.size > MOST_BYTES) return say(new Error(`${chosen.name} has ${(chosen.size / 2 ** 20).toFixed(0)} MB: the page reads up to 20. heedful embed reads files of any size.`));
    return read(chosen.name, decoded(await chosen.arrayBuffer()));
  };
  const toggle = (shows) => {
    editor.hidden = !shows;
    paste.setAttribute("aria-expanded", shows);
    if (shows) field.focus();
  };
  // Shows `text` in place of the user's texts.
  const describe = (text) => {
    shown.textContent = text;
    columns.hidden = true;
  };

  paste.addEventListener("click", () => toggle(editor.hidden));
  take.addEventListener("click", () => read("your lines", field.value));
  column.addEventListener("change", useColumn);
  file.addEventListener("change", () => file.files.length && readFile(file.files[0]).finally(() => { file.value = ""; }));
  const panel = place.closest("[role=tabpanel]");
  panel.addEventListener("dragover", (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    panel.classList.add("dropping");
  });
  for (const type of ["dragleave", "drop"]) panel.addEventListener(type, () => panel.classList.remove("dropping"));
  panel.addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    readFile(event.dataTransfer.files[0]);
  });
  const hint = element("span", { className: "key", textContent: "or drop a .txt, .csv or .jsonl here: up to 2,000 texts" });
  place.replaceChildren(element("div", { className: "row" }, shown, paste, file, open, columns, hint), editor);
  return { describe, read, field };
}

// A file's text: UTF-8, or what spreadsheets write otherwise, UTF-16 and Windows' Latin letters.
function decoded(content) {
  const bytes = new Uint8Array(content);
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

// A file of rows for spreadsheets; cells that need it are quoted.
export function csv(rows) {
  return new Blob([d3.csvFormatRows(rows), "\r\n"], { type: "text/csv" });
}
