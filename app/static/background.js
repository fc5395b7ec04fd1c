// What the page gives its worker to do: `background("ask", {..})` is a promise of the answer.

const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
const waiting = new Map();
let asked = 0;

worker.addEventListener("message", ({ data: { id, answer, error } }) => {
  const { done, fail } = waiting.get(id);
  waiting.delete(id);
  if (error === undefined) done(answer);
  else fail(new Error(error));
});

export function background(kind, input = null) {
  asked += 1;
  worker.postMessage({ id: asked, kind, input });
  return new Promise((done, fail) => waiting.set(asked, { done, fail }));
}
