// Elements, and numbers as the page writes them.

export const byId = (id) => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export function percent(value) {
  return `${(100 * value).toFixed(1)} %`;
}
