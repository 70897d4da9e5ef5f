// Requests: REST, by way of the console's own address, which knows the session.

const API = "api";
const HEADERS = { "x-trestle-console": "1" };

export class ApiError extends Error {
  constructor(code, status, message) {
    super(message);
    this.code = code; // of HTTP; 0: the server was not reached
    this.status = status;
  }
}

// Who wants to know that somebody has to log in.
let onUnauthenticated = () => {};
export function whenUnauthenticated(listener) {
  onUnauthenticated = listener;
}

const unreachable = () => new ApiError(0, "UNAVAILABLE", "The server cannot be reached.");

// A module that is got when it is needed first. It is a TypeError that it could not be got.
export async function module(load) {
  try {
    return await load();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw unreachable();
  }
}

async function request(path, options) {
  try {
    return await fetch(path, {
      ...options,
      headers: { ...HEADERS, ...options.headers },
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unreachable();
  }
}

function errorOf(response, text) {
  try {
    const parsed = JSON.parse(text);
    const { error } = Array.isArray(parsed) ? parsed[0] : parsed;
    return new ApiError(response.status, error.status, error.message);
  } catch {
    return new ApiError(response.status, "", text.trim() || response.statusText);
  }
}

async function check(response) {
  if (response.ok) return response;
  const error = errorOf(response, await response.text());
  if (response.status === 401) onUnauthenticated(error);
  throw error;
}

function optionsOf(verb, body, { signal, headers } = {}) {
  const options = { method: verb, signal, headers: { ...headers } };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["content-type"] = "application/json";
  }
  return options;
}

const addressOf = (path) => `${API}${path}${path.includes("?") ? "&" : "?"}prettyPrint=false`;

export async function call(verb, path, body, more) {
  const response = await check(await request(addressOf(path), optionsOf(verb, body, more)));
  return response.json();
}

export const get = (path, more) => call("GET", path, undefined, more);

// A streaming method's messages, one after the other, as they come. What was sent by then counts:
// to stop, leave the loop. Each stands on a line of its own.
export async function* stream(verb, path, body, more = {}) {
  const leaving = new AbortController();
  more.signal?.addEventListener("abort", () => leaving.abort());
  const options = optionsOf(verb, body, { ...more, signal: leaving.signal });
  const response = await check(await request(addressOf(path), options));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let begun = []; // a line that has come in part: it may be long, and its parts many
  try {
    for (;;) {
      const { value, done } = await reader.read();
      const lines = (done ? "\n" : value).split("\n");
      const last = lines.pop();
      for (const line of lines) {
        begun.push(line);
        const text = begun
          .join("")
          .replace(/^\[/, "")
          .replace(/[,\]]$/, "");
        begun = [];
        if (text !== "") yield messageOf(text);
      }
      begun.push(last);
      if (done) return;
    }
  } finally {
    leaving.abort();
  }
}

const TURN_MS = 30;
let turnBegan = performance.now();

// Lets the page draw and listen, if whoever calls has worked for longer than somebody should wait.
export async function breathe() {
  if (performance.now() - turnBegan < TURN_MS) return;
  await new Promise((go) => setTimeout(go));
  turnBegan = performance.now();
}

function messageOf(text) {
  const message = JSON.parse(text);
  if (message.error)
    throw new ApiError(message.error.code, message.error.status, message.error.message);
  return message;
}

// All pages of a list, at most `most` items: {items, hasMore}.
export async function list(path, member, { most = 1000, ...more } = {}) {
  const items = [];
  let token = "";
  do {
    const join = path.includes("?") ? "&" : "?";
    const page = await get(
      token ? `${path}${join}pageToken=${encodeURIComponent(token)}` : path,
      more,
    );
    items.push(...(page[member] ?? []));
    token = page.nextPageToken ?? "";
  } while (token && items.length < most);
  return { items: items.slice(0, most), hasMore: token !== "" || items.length > most };
}

// --- who is asking ---

export async function session() {
  return (await check(await request("session", { method: "GET" }))).json();
}

export async function health() {
  return (await check(await request("health", { method: "GET" }))).json();
}

export async function logIn(token) {
  const response = await request("login", { method: "POST", body: token });
  if (!response.ok) throw errorOf(response, await response.text());
}

export async function logOut() {
  await check(await request("logout", { method: "POST" }));
}

// --- names, which go into addresses as they are but for what a segment may not have ---

export const instanceName = (place) => `projects/${place.project}/instances/${place.instance}`;
export const tableName = (place) => `${instanceName(place)}/tables/${place.table}`;
export const pathOf = (name) => `/v2/${name.split("/").map(encodeURIComponent).join("/")}`;
export const idOf = (name) => name.slice(name.lastIndexOf("/") + 1);
