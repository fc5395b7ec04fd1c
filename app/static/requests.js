// The only code that calls the service: the request, its timing, and the same request as curl and Python.

import { notesOf } from "./notes.js";

let key = "";

export function useKey(value) {
  key = value;
}

export class Refused extends Error {
  constructor(status, error) {
    super(error.message);
    this.status = status;
    this.code = error.code;
  }
}

// The page's message for a failure: the service's words, changed where the page has no such field.
export function messageOf(failure) {
  if (failure instanceof TypeError) return "The service cannot be reached: see whether it runs, then try again."; // fetch's
  if (!(failure instanceof Refused)) return failure.message;
  if (failure.status === 401) return key ? "The service does not know this API key." : "The service needs an API key.";
  const message = failure.message.replace(/(; send a shorter text)?, or set truncate to true$/, "") // there is no such field here
    .replace(/^inputs(?:\[(\d+)\])? /, (_, i) => (i ? `Text ${Number(i) + 1} ` : "The text "))
    .replace(/^(inputs\.|pairs\[0\]\.)?(premise|a) /, "The first sentence ").replace(/^(inputs\.|pairs\[0\]\.)?(hypothesis|b) /, "The second sentence ")
    .replace(/: send a text$/, ": write something first").replace(/^labels\[(\d+)\] /, (_, i) => `Label ${Number(i) + 1} `);
  return /^[a-z]+ /.test(message) ? `${message[0].toUpperCase()}${message.slice(1)}` : message; // not a field's name
}

async function send(path, body, signal, accept) {
  const headers = { Accept: accept, ...(key && { Authorization: `Bearer ${key}` }) };
  const options = { headers, signal };
  if (body) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
  }
  const response = await fetch(path, options);
  if (!response.ok) throw new Refused(response.status, await errorOf(response));
  return response;
}

// The service's error; a proxy's own is no JSON of it.
async function errorOf(response) {
  const { error } = await response.json().catch(() => ({}));
  return error ?? { message: `Something between this page and the service answered with the error ${response.status}: try again in a moment.`, code: "proxy" };
}

// {answer, timing: [[stage, milliseconds]], notes}; raises Refused with the service's own words. `notes` are what the headers
// say about the texts (notes.js), or null.
export async function ask(path, body, signal) {
  const response = await send(path, body, signal, "application/json");
  return { answer: await response.json(), timing: stages(response), notes: notesOf(response) };
}

// {vectors, size, timing, notes}: a row of `size` values for each text, of length 1, in one Float32Array. A long text is read in windows.
export async function embed(inputs, model, signal) {
  const response = await send("embed", { inputs, model, long: "mean" }, signal, "application/octet-stream;dtype=float32");
  const vectors = new Float32Array(await response.arrayBuffer()); // little-endian, as every browser's processor
  return { vectors, size: vectors.length / inputs.length, timing: stages(response), notes: notesOf(response) };
}

function stages(response) {
  const header = response.headers.get("Server-Timing") ?? "";
  return [...header.matchAll(/(\w+);dur=([\d.]+)/g)].map(([, name, time]) => [name, Number(time)]);
}

// Where the page itself sends a request: a proxy may serve it below a path.
const address = (path) => new URL(path, document.baseURI).href;

export function asCurl(path, body) {
  const quoted = JSON.stringify(body).replaceAll("'", "'\\''");
  const auth = key ? " -H 'Authorization: Bearer '\"$HEEDFUL_API_KEY\"" : "";
  return `curl ${address(path)} -H 'Content-Type: application/json'${auth} \\\n  -d '${quoted}'`;
}

export function asPython(path, body) {
  const auth = key ? `,\n    headers={"Authorization": f"Bearer {os.environ['HEEDFUL_API_KEY']}"}` : "";
  return `import ${key ? "os\n\nimport " : ""}httpx\n\nanswer = httpx.post(\n    "${address(path)}",\n    json=${python(body)}${auth},\n)\nprint(answer.json())`;
}

function python(value) {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null) return "None";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value).map(([name, inner]) => `${JSON.stringify(name)}: ${python(inner)}`).join(", ")}}`;
  }
  return JSON.stringify(value);
}
