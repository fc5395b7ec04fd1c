// Elements, and numbers as the page writes them.

export const byId = (id) => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// "1 text", "2,000 texts".
export const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

export function percent(value) {
  return `${(100 * value).toFixed(1)} %`;
}
