// A text that is longer than the model reads: how long it is, and a button that cuts it.

import { ask, Refused } from "./requests.js";

// The failure, said with the text's length, and with the remedy `cut`.
export async function withLength(failure, texts, cut, signal) {
  if (failure.code !== "input_too_long") return failure;
  const model = failure.message.match(/longer than (\S+) reads|tokens: (\S+) is explained/)?.slice(1).find(Boolean);
  const most = Number(failure.message.match(/reads \((\d+) tokens|explained up to (\d+)/)?.slice(1).find(Boolean));
  const size = Math.max(1, Math.floor(most / 4)); // words that are counted together: few enough to be read whole
  const pieces = texts.flatMap((text, owner) => text.match(/\S+/g)?.reduce((all, word, i) => {
    if (i % size === 0) all.push({ owner, words: [] });
    all.at(-1).words.push(word);
    return all;
  }, []) ?? []);
  const { answer } = await ask("tokenize", { inputs: pieces.map(({ words }) => words.join(" ")), model, truncate: true }, signal);
  const lengths = texts.map((_, owner) => d3.sum(answer, (tokens, i) => (pieces[i].owner === owner ? tokens.length : 0)));
  const longest = Math.max(...lengths);
  const which = texts.length === 1 ? "The text" : `${["The first", "The second"][lengths.indexOf(longest)]} sentence`;
  const reads = /explained/.test(failure.message) ? `each word is weighed in texts of up to ${most}` : `${model} reads ${most}`;
  const message = longest > most
    ? `${which} has ${longest.toLocaleString("en")} words and punctuation marks; ${reads}.`
    : `${which} holds more than 500 characters without a space, which ${model} does not read.`;
  const plain = new Refused(failure.status, { message, code: failure.code });
  plain.remedy = { label: longest > most ? `Cut it after ${most}` : "Cut it there", work: cut };
  return plain;
}
