// The collection as points on a canvas: clusters in colour, the question as a diamond, a text under the pointer or finger.

import { element } from "./dom.js";

const NEAR = 18; // pixels from a point at which it is meant
const PAD = 18;

// {box, draw(points, assigned), ask(point, hits), light(index, cluster)}; `choose(index)` is called at a click or Enter.
export function pointMap(choose) {
  const canvas = element("canvas");
  const read = element("p", { className: "read", textContent: "Point at a text, or tap it." });
  const frame = element("div", { className: "points", tabIndex: 0 }, canvas);
  frame.setAttribute("role", "group");
  const box = element("div", {}, frame, read);
  const state = { texts: [], points: [], assigned: [], hits: [], question: null, lit: null, cluster: null, places: [], order: [] };

  const colours = () => {
    const style = getComputedStyle(frame);
    return { of: (cluster) => style.getPropertyValue(`--cluster-${cluster}`), ink: style.getPropertyValue("--ink"), ground: style.getPropertyValue("--raised"), mark: style.getPropertyValue("--mark") };
  };
  const place = () => {
    const { width, height } = frame.getBoundingClientRect();
    const all = state.question ? [...state.points, ...state.question] : state.points;
    const axis = (parity, most, least) => d3.scaleLinear(d3.extent(all.filter((_, i) => i % 2 === parity)), [least, most]);
    const [x, y] = [axis(0, width - PAD, PAD), axis(1, PAD, height - PAD)];
    const at = (values, i) => [x(values[2 * i]), y(values[2 * i + 1])];
    return { width, height, at, places: state.texts.map((_, i) => at(state.points, i)) };
  };
  const paint = () => {
    if (!state.texts.length || !frame.clientWidth) return;
    const { width, height, at, places } = place();
    state.places = places;
    const sharp = devicePixelRatio;
    [canvas.width, canvas.height] = [width * sharp, height * sharp];
    const context = canvas.getContext("2d");
    context.scale(sharp, sharp);
    const { of, ink, ground, mark } = colours();
    const dot = (i, radius) => {
      context.beginPath();
      context.arc(...places[i], radius, 0, 2 * Math.PI);
    };
    const radius = state.texts.length > 400 ? 3 : 5;
    for (const i of state.texts.keys()) {
      context.globalAlpha = state.cluster === null || state.assigned[i] === state.cluster ? 0.85 : 0.12;
      context.fillStyle = of(state.assigned[i]);
      dot(i, radius);
      context.fill();
    }
    context.globalAlpha = 1;
    if (state.question) {
      const [x, y] = at(state.question, 0);
      context.strokeStyle = ink;
      for (const [i] of state.hits.slice(0, 5)) {
        context.globalAlpha = 0.35;
        context.beginPath();
        context.moveTo(x, y);
        context.lineTo(...places[i]);
        context.stroke();
        context.globalAlpha = 1;
        dot(i, radius + 2.5);
        context.stroke();
      }
      context.beginPath();
      for (const [dx, dy] of [[0, -9], [9, 0], [0, 9], [-9, 0]]) context.lineTo(x + dx, y + dy);
      context.closePath();
      context.fillStyle = ink;
      context.strokeStyle = ground;
      context.lineWidth = 2;
      context.fill();
      context.stroke();
    }
    if (state.lit !== null) {
      context.lineWidth = 3;
      context.strokeStyle = mark;
      dot(state.lit, radius + 4);
      context.stroke();
    }
  };
  let scheduled = false;
  const later = () => {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => {
      scheduled = false;
      paint();
    });
  };
  const light = (index, cluster = null) => {
    if (index === state.lit && cluster === state.cluster) return;
    Object.assign(state, { lit: index, cluster });
    say();
    later();
  };
  const say = () => { read.textContent = state.lit === null ? "Point at a text, or tap it." : state.texts[state.lit]; };
  const under = (event) => {
    const { left, top } = frame.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const i = d3.minIndex(state.places, ([px, py]) => (px - x) ** 2 + (py - y) ** 2);
    return i >= 0 && Math.hypot(state.places[i][0] - x, state.places[i][1] - y) < NEAR ? i : null;
  };
  frame.addEventListener("pointermove", (event) => light(under(event), state.cluster));
  frame.addEventListener("pointerleave", () => light(null, state.cluster));
  frame.addEventListener("click", (event) => {
    const i = under(event);
    light(i, state.cluster);
    if (i !== null) choose(i);
  });
  frame.addEventListener("focus", () => read.setAttribute("aria-live", "polite"));
  frame.addEventListener("blur", () => read.removeAttribute("aria-live"));
  // The arrows go from text to text, from left to right.
  frame.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter" && state.lit !== null) choose(state.lit);
    if (!step || !state.order.length) return;
    event.preventDefault();
    const now = state.order.indexOf(state.lit);
    light(state.order[(now + step + state.order.length) % state.order.length], state.cluster);
  });
  new ResizeObserver(later).observe(frame);
  new MutationObserver(later).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);

  return {
    box,
    light,
    show(texts, { points, assigned }) {
      const order = d3.range(texts.length).sort((a, b) => points[2 * a] - points[2 * b]);
      Object.assign(state, { texts, points: [...points], assigned, hits: [], question: null, lit: null, cluster: null, order });
      say();
      frame.setAttribute("aria-label", `Map of ${texts.length} texts: alike texts lie close together. The arrow keys go from text to text, Enter shows what is like it.`);
      later();
    },
    ask(question, hits) {
      Object.assign(state, { question, hits });
      later();
    },
    // Where a text is drawn, in pixels of the frame.
    place: (index) => state.places[index],
  };
}
