// Small changes of an English sentence whose effect on the meaning is known.

const AUXILIARY = /\b(is|are|was|were|am|can|could|will|would|shall|should|must|may|might|do|does|did|has|have|had)\b(?! no\b)/i;
const NEGATED = /\b(is|are|was|were|am|can|could|will|would|shall|should|must|may|might|do|does|did|has|have|had)(?: not|n['’]t)\b/i;
// "have" that is no auxiliary.
const OWNED = /\b(have|has|had)(?= (?:to|an?|the|some|any|my|your|his|her|its|our|their|\d+) )/i;
const NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

const lower = (text) => (/^(I|[A-Z]{2,})\b/.test(text) ? text : text[0].toLowerCase() + text.slice(1));

// The sentence denied, or its denial taken away; "on" and "off" change places.
export function negated(text) {
  if (/\bcannot\b/i.test(text)) return text.replace(/\bcannot\b/i, "can");
  if (/\bcan['’]t\b/i.test(text)) return text.replace(/\bcan['’]t\b/i, "can");
  if (/\bwon['’]t\b/i.test(text)) return text.replace(/\bwon['’]t\b/i, "will");
  if (NEGATED.test(text)) return text.replace(NEGATED, "$1");
  if (OWNED.test(text)) return text.replace(OWNED, (verb) => `${{ have: "do", has: "does", had: "did" }[verb.toLowerCase()]} not have`);
  if (AUXILIARY.test(text)) return text.replace(AUXILIARY, "$1 not");
  const switched = text.replace(/\b(?:turn|switch)(?:ed|s)? (on|off)\b/i, (phrase, state) => phrase.replace(state, state.toLowerCase() === "on" ? "off" : "on"));
  return switched === text ? `It is not true that ${lower(text)}` : switched;
}

// The sentence with its first number changed; null if it holds none.
export function renumbered(text) {
  if (/\d/.test(text)) return text.replace(/\d+/, (digits) => String(Number(digits) < 100 ? Number(digits) + 1 : 2 * Number(digits)));
  const word = new RegExp(`\\b(${NUMBERS.join("|")})\\b`, "i");
  if (!word.test(text)) return null;
  return text.replace(word, (match) => {
    const next = NUMBERS[(NUMBERS.indexOf(match.toLowerCase()) + 1) % NUMBERS.length];
    return match[0] === match[0].toUpperCase() ? next[0].toUpperCase() + next.slice(1) : next;
  });
}
