// The one place that talks to the server: same origin, the session's cookie, and the token against forged requests.
const BASE = "/api/v1";
const PATIENCE = [300, 1_000, 3_000]; // milliseconds before each further try of what is safe to repeat

let csrf = null;
let onGone = () => {};

/** What the server refused, or that it could not be reached, with the fields of its problem. */
export class Problem extends Error {
  constructor(body, status) {
    super(body.sentence ?? body.detail ?? body.title ?? "");
    this.status = status;
    this.error = body.error ?? null;
    this.sentence = body.sentence ?? body.detail ?? null;
    this.hint = body.hint ?? null;
    this.place = body.place ?? null;
    this.incident = body.incident ?? null;
    this.title = body.title ?? null;
  }
}

export function rememberCsrf(token) {
  csrf = token;
}

/** Who is told when the session ended: a token that expired or was revoked. */
export function whenGone(tell) {
  onGone = tell;
}

async function send(method, path, { body, headers = {}, signal } = {}) {
  const all = { Accept: "application/json", ...headers };
  if (body !== undefined) all["Content-Type"] = "application/json";
  if (csrf !== null && method !== "GET") all["X-Curador-CSRF"] = csrf;
  let answer;
  try {
    answer = await fetch(BASE + path, {
      method,
      headers: all,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ error: "Unreachable" }, 0);
  }
  if (answer.ok) return answer;
  const problem = new Problem(await readProblem(answer), answer.status);
  if (answer.status === 401 && csrf !== null) onGone();
  throw problem;
}

async function readProblem(answer) {
  try {
    const body = await answer.json();
    return body !== null && typeof body === "object" ? body : {};
  } catch {
    return {};
  }
}

async function json(answer) {
  return answer.status === 204 ? null : await answer.json();
}

export async function get(path, options) {
  return json(await send("GET", path, options));
}

export async function post(path, body, options = {}) {
  return json(await send("POST", path, { ...options, body }));
}

export async function remove(path) {
  return json(await send("DELETE", path));
}

/** A post that pays once however often it is tried: the key is the same every time. */
export async function postOnce(path, body, key, { signal } = {}) {
  for (let tried = 0; ; tried += 1) {
    try {
      const answer = await send("POST", path, { body, signal, headers: { "Idempotency-Key": key } });
      return { status: answer.status, body: await json(answer) };
    } catch (error) {
      const again = error instanceof Problem && (error.status === 0 || error.status === 503);
      if (!again || tried >= PATIENCE.length) throw error;
      await new Promise((done) => setTimeout(done, PATIENCE[tried]));
    }
  }
}

/** 128 random bits: nobody else's key, and none of this person's other questions'. */
export function makeKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (one) => one.toString(16).padStart(2, "0")).join("");
}

/** Fetch a file and hand it to the browser under a name that is made of our own words only. */
export async function download(path, accept, name) {
  const answer = await send("GET", path, { headers: { Accept: accept } });
  const address = URL.createObjectURL(await answer.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Hear how a long question goes. Returns what stops listening. */
export function listen(id, told) {
  const source = new EventSource(`${BASE}/answers/${encodeURIComponent(id)}/events`);
  const hear = (name) => source.addEventListener(name, (event) => told(name, parse(event.data)));
  for (const name of ["queued", "running", "tick", "done", "failed"]) hear(name);
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) told("closed", {});
  });
  return () => source.close();
}

function parse(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}
