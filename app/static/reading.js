// The vectors of many texts, asked for in batches.

import { joined } from "./notes.js";
import { embed } from "./requests.js";

const BATCH = 64; // texts in a request
const AT_ONCE = 2; // requests

// {vectors, size, notes}: a row of `size` values for each text. `progress(done)` is called after each batch.
export async function readVectors(texts, model, signal, progress) {
  let [vectors, size, next, done, notes] = [null, 0, 0, 0, null];
  const work = async () => {
    while (next < texts.length) {
      const from = next;
      next += BATCH;
      const batch = texts.slice(from, next);
      const answer = await embed(batch, model, signal);
      ({ size } = answer);
      vectors ??= new Float32Array(texts.length * size);
      vectors.set(answer.vectors, from * size);
      notes = joined(notes, answer.notes, texts.length);
      done += batch.length;
      progress(done);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return { vectors, size, notes };
}
