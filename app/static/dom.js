// Elements, and numbers as the page writes them.

export const byId = (id) => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

// "1 text", "2,000 texts".
export const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

export function percent(value) {
  return `${(100 * value).toFixed(1)} %`;
}
