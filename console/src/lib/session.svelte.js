// Who looks: the session that the cookie stands for, and what the server says of it.
import { get, post, remove, rememberCsrf, whenGone } from "./api.js";

export const session = $state({ state: "starting", me: null, ended: false });

const PULSE = 30_000; // milliseconds between two looks at whether the token still holds

function enter(me) {
  rememberCsrf(me.csrf);
  session.me = me;
  session.state = "in";
  session.ended = false;
}

function leave(ended) {
  rememberCsrf(null);
  forgetPending();
  session.me = null;
  session.state = "out";
  session.ended = ended;
}

whenGone(() => leave(true));

export async function resume() {
  try {
    enter(await get("/session"));
  } catch (problem) {
    leave(false);
    if (problem.status !== 401) throw problem;
  }
}

export async function login(token) {
  enter(await post("/session", { token }));
}

export async function logout() {
  try {
    await remove("/session");
  } finally {
    leave(false);
  }
}

setInterval(() => {
  if (session.state === "in" && document.visibilityState === "visible") get("/me").catch(() => {});
}, PULSE);

// ---- a question that is under way, so that a page that is loaded again pays for nothing twice

const PENDING = "curador-pending";

export function rememberPending(pending) {
  try {
    sessionStorage.setItem(PENDING, JSON.stringify(pending));
  } catch {
    // a browser that keeps nothing: the key is lost with the page, the answer stays in the history
  }
}

export function readPending() {
  try {
    return JSON.parse(sessionStorage.getItem(PENDING) ?? "null");
  } catch {
    return null;
  }
}

export function forgetPending() {
  try {
    sessionStorage.removeItem(PENDING);
  } catch {
    // idem
  }
}
