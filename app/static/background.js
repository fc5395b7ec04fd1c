// Work in the page's worker: `background("ask", {..})` is a promise of the answer.

const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
const waiting = new Map();
let lastId = 0;

worker.addEventListener("message", ({ data: { id, answer, error } }) => {
  const { done, fail } = waiting.get(id);
  waiting.delete(id);
  if (error === undefined) done(answer);
  else fail(new Error(error));
});

export function background(kind, input = null) {
  lastId += 1;
  worker.postMessage({ id: lastId, kind, input });
  return new Promise((done, fail) => waiting.set(lastId, { done, fail }));
}
