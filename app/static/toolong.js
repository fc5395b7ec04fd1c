// A text that is longer than the model reads: the service's message in the page's words, and a button that cuts the text.

import { Refused } from "./requests.js";

const TOO_LONG = / has (.+?)(?:: \S+ is explained up to (\d+)| and is longer than (\S+) reads \((\d+) tokens).*/s;

// The failure with the remedy `cut`, if it is one of length.
export function withCut(failure, cut) {
  const [told, length, explained, model, reads] = (failure.code === "input_too_long" && failure.message.match(TOO_LONG)) || [];
  if (!told) return failure;
  const limit = explained ? `each word is weighed in texts of up to ${explained}` : `${model} reads ${reads}`;
  const message = failure.message.replace(told, ` has ${length.replace(/tokens$/, "words and punctuation marks")}; ${limit}.`);
  const plain = new Refused(failure.status, { message, code: failure.code });
  plain.remedy = { label: /tokens$/.test(length) ? `Cut it after ${explained ?? reads}` : "Cut it there", work: cut };
  return plain;
}
