// The collection's vectors, kept and compared off the page's thread, so that typing and drawing never wait for them.

import { closePairs, clusters, cosines, MOST_PAIRS, nearest, plane, project } from "./geometry.js";
import { clusterWords, readTexts } from "./texts.js";

const CLUSTERS = 8; // at most: as many colours can be told apart
const CLOSE = 0.6; // pairs that are less alike are no near-duplicates for anyone
const SLICE = 8; // milliseconds until a question is looked for

let texts = [];
let vectors = new Float32Array();
let size = 1;
let flat = null;
let current = 0; // counts the collections: work for an older one stops

const breathe = () => new Promise((done) => setTimeout(done));

const work = {
  read: ({ name, content }) => readTexts(name, content),

  // {points, assigned, words}: [x, y] of each text, its cluster, and the words of each cluster.
  keep(collection) {
    current += 1;
    ({ texts, vectors, size } = collection);
    flat = plane(vectors, size);
    const count = Math.min(CLUSTERS, Math.round(Math.sqrt(texts.length)));
    const assigned = clusters(vectors, size, count);
    return { points: project(vectors, size, flat), assigned, words: clusterWords(texts, assigned, count) };
  },

  // The texts nearest to a question, how long comparing took, and where the question lies on the map.
  ask({ query, most }) {
    const started = performance.now();
    const hits = nearest(query, vectors, size, most);
    return { hits, took: performance.now() - started, point: project(query, size, flat) };
  },

  // Cosines of every two of these texts, row by row.
  matrix({ rows }) {
    const chosen = new Float32Array(rows.length * size);
    rows.forEach((row, i) => chosen.set(vectors.subarray(row * size, (row + 1) * size), i * size));
    return rows.map((_, i) => cosines(chosen.subarray(i * size, (i + 1) * size), chosen, size));
  },

  async duplicates() {
    const collectionNumber = current;
    const steps = closePairs(vectors, size, CLOSE, MOST_PAIRS);
    for (let rested = performance.now(), step = steps.next(); ; step = steps.next()) {
      if (step.done) return step.value;
      if (performance.now() - rested < SLICE) continue;
      await breathe();
      if (collectionNumber !== current) return [];
      rested = performance.now();
    }
  },
};

addEventListener("message", async ({ data: { id, kind, input } }) => {
  try {
    postMessage({ id, answer: await work[kind](input) });
  } catch (error) {
    postMessage({ id, error: error.message });
  }
});
