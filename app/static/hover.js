// Marks of one token, in every drawing of its sentence and of a pair's other one, light up together.

const NEAR = 0.02; // cosines that are so close to the highest count as much

// Calls `light` with the token (its index, as text) under the pointer or focus, or null.
function watch(root, light) {
  const token = (event) => {
    const part = event.target.closest?.("[data-token], [data-row]");
    return part ? (part.dataset.token ?? part.dataset.row) : null;
  };
  for (const type of ["pointerover", "focusin"]) root.addEventListener(type, (event) => light(token(event)));
  for (const type of ["pointerleave", "focusout"]) root.addEventListener(type, () => light(null));
}

// Links everything under `root` that carries data-token (a token's index), or data-row and data-column.
export function hover(root) {
  const light = (token) => {
    for (const part of root.querySelectorAll("[data-token]")) {
      part.classList.toggle(part.tagName === "BUTTON" ? "on" : "lit", part.dataset.token === token);
    }
    for (const cell of root.querySelectorAll("[data-row]")) {
      cell.classList.toggle("lit", token !== null && (cell.dataset.row === token || cell.dataset.column === token));
    }
  };
  watch(root, light);
}

// Links the pictures of a pair: a token lights up the most similar token of the other sentence, and its line of
// the map (which may be null); a cell of the map lights up its two tokens. `cosines` has a row for each token of the first sentence.
export function across(pictures, map, cosines) {
  const lines = [cosines, d3.transpose(cosines)];
  const cells = map ? [...map.querySelectorAll(".cell")] : [];
  const place = (cell) => [Math.floor(cells.indexOf(cell) / cosines[0].length), cells.indexOf(cell) % cosines[0].length];
  const mark = (picture, near) => {
    for (const part of picture.querySelectorAll("button[data-token], .word[data-token]")) {
      part.classList.toggle("near", near(Number(part.dataset.token)));
    }
  };
  for (const [side, picture] of pictures.entries()) {
    watch(picture, (token) => {
      const line = token === null ? [] : lines[side][token];
      const most = d3.max(line);
      mark(pictures[1 - side], (i) => line[i] >= most - NEAR);
      for (const cell of cells) cell.classList.toggle("lit", String(place(cell)[side]) === token);
    });
  }
  const point = (cell) => {
    for (const [side, picture] of pictures.entries()) mark(picture, (i) => cell !== null && place(cell)[side] === i);
    for (const other of cells) other.classList.toggle("lit", other === cell);
  };
  map?.addEventListener("pointerover", (event) => point(event.target.closest(".cell")));
  map?.addEventListener("pointerleave", () => point(null));
}
