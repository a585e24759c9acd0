// Requests to the service, shared by its pages.

const POLL_MILLISECONDS = 700;
const TOO_MANY_REQUESTS = 429;
let latestRequest = 0;

/** Start a request. Returns a function that checks whether it is the latest: results of older ones are dropped. */
export function startRequest() {
  latestRequest += 1;
  const number = latestRequest;
  return () => number === latestRequest;
}

/** Send an object as JSON, a file as it is, or, without a body, a GET. Returns the response. Throws an Error with the
 * service's message; `busy`: the service is overloaded. */
export async function send(path, { body = null, key = "", query = null } = {}) {
  const isFile = body instanceof Blob;
  const headers = {};
  if (body && !isFile) headers["content-type"] = "application/json";
  if (key) headers.authorization = `Bearer ${key}`;
  const url = query ? `${path}?${new URLSearchParams(query)}` : path;
  const content = isFile ? body : JSON.stringify(body);
  const response = await fetch(url, body ? { method: "POST", headers, body: content } : { headers });
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({}));
  throw Object.assign(new Error(error || `the service answered ${response.status}`), {
    busy: response.status === TOO_MANY_REQUESTS,
  });
}

/** As send(), but returns the content of a JSON response. */
export async function request(path, options) {
  return (await send(path, options)).json();
}

/** Wait until all models are loaded. report(text, isError) is called in the meantime. */
export async function waitUntilReady(report) {
  for (;;) {
    const response = await fetch("/ready").catch(() => null);
    if (response?.ok) return;
    const content = await response?.json().catch(() => null);
    if (!response) report("the service cannot be reached.", true);
    else if (content?.error) report(`a model could not be loaded: ${content.error}`, true);
    else report("loading the models …", false);
    await new Promise((resolve) => setTimeout(resolve, POLL_MILLISECONDS));
  }
}

/** The error for a file that is too large; empty for others. */
export function sizeError(file, { file: limit }) {
  return limit && file.size > limit ? `over ${limit.toLocaleString()} bytes` : "";
}
