// Vectors of texts, in one Float32Array of n rows of `size` values, each of length 1: nearest rows, a plane to draw them on,
// clusters, close pairs. Pure functions: the worker calls them.

const STEPS = 60; // of the power iteration: the map's axes no longer move visibly
const ROUNDS = 20; // of k-means, at most
const STARTS = 3;
export const MOST_PAIRS = 300; // close ones, the closest first

function dot(a, from, b, to, size) {
  let sum = 0;
  for (let i = 0; i < size; i++) sum += a[from + i] * b[to + i];
  return sum;
}

// Cosine of every row with `query`.
export function cosines(query, vectors, size) {
  return Float32Array.from({ length: vectors.length / size }, (_, row) => dot(query, 0, vectors, row * size, size));
}

// [[index, cosine]], the `most` nearest first.
export function nearest(query, vectors, size, most) {
  const all = cosines(query, vectors, size);
  const order = Uint32Array.from(all.keys()).sort((a, b) => all[b] - all[a] || a - b);
  return [...order.subarray(0, most)].map((row) => [row, all[row]]);
}

// The two directions in which the rows differ most (principal components): {mean, axes}, by power iteration.
export function plane(vectors, size) {
  const rows = vectors.length / size;
  const mean = new Float64Array(size);
  for (let i = 0; i < vectors.length; i++) mean[i % size] += vectors[i] / rows;
  const axes = [];
  for (let axis = 0; axis < 2; axis++) {
    let direction = Float64Array.from({ length: size }, (_, i) => Math.sin(1 + i + axis)); // any start, but the same one each time
    for (let step = 0; step < STEPS; step++) {
      const next = new Float64Array(size);
      const offset = dot(mean, 0, direction, 0, size);
      for (let row = 0; row < rows; row++) {
        const share = dot(vectors, row * size, direction, 0, size) - offset;
        for (let i = 0; i < size; i++) next[i] += share * (vectors[row * size + i] - mean[i]);
      }
      for (const other of axes) {
        const along = dot(next, 0, other, 0, size);
        for (let i = 0; i < size; i++) next[i] -= along * other[i];
      }
      const length = Math.sqrt(dot(next, 0, next, 0, size));
      if (length < 1e-9) break; // all rows lie on fewer axes
      direction = next.map((value) => value / length);
    }
    axes.push(direction);
  }
  return { mean, axes };
}

// [x, y] of each row on a plane, in one Float32Array.
export function project(vectors, size, { mean, axes }) {
  const offsets = axes.map((axis) => dot(mean, 0, axis, 0, size));
  return Float32Array.from({ length: (2 * vectors.length) / size }, (_, i) => dot(vectors, (i >> 1) * size, axes[i & 1], 0, size) - offsets[i & 1]);
}

// The cluster of each row, of `count`: k-means on the sphere, the best of a few starts. The same rows give the same clusters.
export function clusters(vectors, size, count) {
  const random = generator();
  const runs = Array.from({ length: STARTS }, () => kMeans(vectors, size, count, spread(vectors, size, count, random)));
  return runs.reduce((best, run) => (run.total > best.total ? run : best)).assigned;
}

// Numbers from 0 to 1 that are the same each time (a linear congruential generator).
function generator() {
  let state = 1;
  return () => (state = (1664525 * state + 1013904223) % 2 ** 32) / 2 ** 32;
}

// The first centres: rows drawn with odds by their squared distance from those before (k-means++).
function spread(vectors, size, count, random) {
  const rows = vectors.length / size;
  const centres = new Float32Array(count * size);
  const far = new Float64Array(rows).fill(1);
  for (let centre = 0; centre < count; centre++) {
    let left = random() * far.reduce((sum, value) => sum + value, 0);
    let row = 0;
    while (row < rows - 1 && (left -= far[row]) > 0) row += 1;
    centres.set(vectors.subarray(row * size, (row + 1) * size), centre * size);
    for (let i = 0; i < rows; i++) far[i] = Math.min(centre ? far[i] : 2, Math.max(0, 1 - dot(vectors, i * size, centres, centre * size, size)));
  }
  return centres;
}

// {assigned, total}: the cluster of each row, and the sum of its cosines with the centres.
function kMeans(vectors, size, count, centres) {
  const rows = vectors.length / size;
  const assigned = new Uint8Array(rows);
  let total = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const sums = new Float32Array(count * size);
    let moved = 0;
    total = 0;
    for (let row = 0; row < rows; row++) {
      let chosen = 0;
      let most = -2;
      for (let centre = 0; centre < count; centre++) {
        const cosine = dot(vectors, row * size, centres, centre * size, size);
        if (cosine > most) [chosen, most] = [centre, cosine];
      }
      moved += chosen !== assigned[row];
      assigned[row] = chosen;
      total += most;
      for (let i = 0; i < size; i++) sums[chosen * size + i] += vectors[row * size + i];
    }
    if (round && !moved) break;
    for (let centre = 0; centre < count; centre++) {
      const length = Math.sqrt(dot(sums, centre * size, sums, centre * size, size));
      if (length) for (let i = 0; i < size; i++) centres[centre * size + i] = sums[centre * size + i] / length; // an empty one stays
    }
  }
  return { assigned, total };
}

// Yields after each row, so that questions are answered in between; returns [[i, j, cosine]], i < j: the `most` closest pairs
// of at least `least`.
export function* closePairs(vectors, size, least, most) {
  const rows = vectors.length / size;
  let pairs = [];
  let bar = least;
  for (let i = 0; i < rows; i++) {
    for (let j = i + 1; j < rows; j++) {
      const cosine = dot(vectors, i * size, vectors, j * size, size);
      if (cosine >= bar) pairs.push([i, j, cosine]);
    }
    if (pairs.length > 4 * most || i === rows - 1) {
      pairs = pairs.sort((a, b) => b[2] - a[2]).slice(0, most);
      if (pairs.length === most) bar = pairs[most - 1][2];
    }
    yield;
  }
  return pairs;
}
