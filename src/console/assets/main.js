// The frame around the pages, and which page an address stands for:
//
//     #/                                       whether the server is well
//     #/instances                              instances
//     #/operations                             operations
//     #/audit                                  the audit log
//     #/running                                requests that run now
//     #/slow                                   slow requests
//     #/metrics                                the server's metrics
//     #/settings                               the server's settings
//     #/clusters                               those that copy each other's changes
//     #/query?…                                what the server remembers of itself, by SQL
//     #/datastore                              Datastore's databases
//     #/d/PROJECT/DATABASE                     one of them: its kinds
//     #/d/PROJECT/DATABASE/entities?…          … and entities, entity, gql, indexes, advice
//     #/p/PROJECT/i/INSTANCE                   an instance: its tables
//     #/p/PROJECT/i/INSTANCE/query             … and by the same pattern clusters, backups
//     #/p/PROJECT/i/INSTANCE/advice            what the schema advisor says; also of a table
//     #/p/PROJECT/i/INSTANCE/t/TABLE           a table
//     #/p/PROJECT/i/INSTANCE/t/TABLE/rows?…    its rows
//     #/p/PROJECT/i/INSTANCE/t/TABLE/heat?…    its heat
import * as api from "./api.js";
import { button, dialog, failure, h, link, loading, notice, put } from "./dom.js";
import { health } from "./health.js";
import { login, loginOver } from "./login.js";
import { themeSwitch } from "./themes.js";

// What each page's module imports, in the end, as the page tells (embed_assets.py): the browser
// gets all of it at once, where it would come level by level.
const NEEDS = new Map(
  document
    .querySelector("meta[name=modules]")
    .content.split(";")
    .map((each) => each.split(":")),
);

function announce(file) {
  for (const name of (NEEDS.get(file) ?? "").split(" ").filter(Boolean)) {
    const href = new URL(`./${name}.js`, import.meta.url).href;
    document.head.append(h("link", { rel: "modulepreload", href }));
  }
  NEEDS.delete(file);
}

// A page whose module is got when somebody goes there first.
function lazily(file, name) {
  const load = () => {
    announce(file);
    return import(`./${file}.js`);
  };
  const page = async (...where) => (await api.module(load))[name](...where);
  return Object.assign(page, { load });
}

const advice = lazily("advice", "advice");
const audit = lazily("audit", "audit");
const backups = lazily("instance", "backups");
const allClusters = lazily("clusters", "clusters");
const clusters = lazily("instance", "clusters");
const databases = lazily("datastore", "databases");
const entities = lazily("datastore_entities", "entities");
const entity = lazily("datastore_entity", "entity");
const gql = lazily("datastore_gql", "gql");
const heat = lazily("heat", "heat");
const home = lazily("home", "home");
const indexes = lazily("datastore_indexes", "indexes");
const instances = lazily("instances", "instances");
const kinds = lazily("datastore", "kinds");
const metrics = lazily("metrics", "metrics");
const operations = lazily("operations", "operations");
const query = lazily("query", "query");
const rows = lazily("rows", "rows");
const running = lazily("running", "running");
const serverQuery = lazily("query", "serverQuery");
const settings = lazily("settings", "settings");
const slow = lazily("slow", "slow");
const table = lazily("table", "table");
const tables = lazily("instance", "tables");

const INSTANCE = "/p/([^/]+)/i/([^/]+)";
const DATABASE = "/d/([^/]+)/([^/]+)";
const ROUTES = [
  [/^\/?$/, home, []],
  [/^\/instances$/, instances, []],
  [/^\/operations$/, operations, []],
  [/^\/audit$/, audit, []],
  [/^\/running$/, running, []],
  [/^\/slow$/, slow, []],
  [/^\/metrics$/, metrics, []],
  [/^\/settings$/, settings, []],
  [/^\/clusters$/, allClusters, []],
  [/^\/query$/, serverQuery, []],
  [/^\/datastore$/, databases, []],
  [new RegExp(`^${DATABASE}$`), kinds, ["project", "database"]],
  [new RegExp(`^${DATABASE}/entities$`), entities, ["project", "database"]],
  [new RegExp(`^${DATABASE}/entity$`), entity, ["project", "database"]],
  [new RegExp(`^${DATABASE}/gql$`), gql, ["project", "database"]],
  [new RegExp(`^${DATABASE}/indexes$`), indexes, ["project", "database"]],
  [new RegExp(`^${DATABASE}/advice$`), advice, ["project", "database"]],
  [new RegExp(`^${INSTANCE}$`), tables, ["project", "instance"]],
  [new RegExp(`^${INSTANCE}/clusters$`), clusters, ["project", "instance"]],
  [new RegExp(`^${INSTANCE}/backups$`), backups, ["project", "instance"]],
  [new RegExp(`^${INSTANCE}/advice$`), advice, ["project", "instance"]],
  [new RegExp(`^${INSTANCE}/t/([^/]+)/advice$`), advice, ["project", "instance", "table"]],
  [new RegExp(`^${INSTANCE}/query$`), query, ["project", "instance"]],
  [new RegExp(`^${INSTANCE}/t/([^/]+)$`), table, ["project", "instance", "table"]],
  [new RegExp(`^${INSTANCE}/t/([^/]+)/rows$`), rows, ["project", "instance", "table"]],
  [new RegExp(`^${INSTANCE}/t/([^/]+)/heat$`), heat, ["project", "instance", "table"]],
];

// What the header leads to, each by a key after "g", too.
const SECTIONS = [
  { key: "h", to: "/", title: "Home" },
  {
    key: "i",
    to: "/instances",
    title: "Instances",
    has: (path) => path === "/instances" || path.startsWith("/p/"),
  },
  { key: "d", to: "/datastore", title: "Datastore", has: (path) => path.startsWith("/d") },
  { key: "c", to: "/clusters", title: "Clusters", isFor: () => who.clusters },
  { key: "o", to: "/operations", title: "Operations" },
  { key: "a", to: "/audit", title: "Audit log" },
  { key: "r", to: "/running", title: "Running" },
  { key: "l", to: "/slow", title: "Slow requests" },
  { key: "m", to: "/metrics", title: "Metrics" },
  { key: "s", to: "/settings", title: "Settings" },
];

// Those that there are on this server.
const sections = () => SECTIONS.filter(({ isFor }) => !isFor || isFor());

const shortcuts = () => [
  ["?", "this list"],
  ...sections().map(({ key, title }) => [`g  ${key}`, title]),
  ["/", "the first field of the page"],
  ["n  p", "next and previous rows or results"],
  ["Ctrl + Enter", "run the query"],
  ["Ctrl + Space", "complete a name in the query"],
  ["Escape", "close what lies over the page"],
];

const app = document.getElementById("app");
let who = { authentication: false, session: false, principal: "" };
let leaving = new AbortController();

// --- the frame ---

function brand() {
  return h(
    "a",
    { class: "brand", href: "#/" },
    h("span", { class: "mark", "aria-hidden": "true" }),
    "Trestle",
  );
}

function account() {
  if (!who.authentication) return [];
  return [
    h("span", { class: "principal", title: who.principal }, who.principal),
    who.session && button("Log out", logOut),
  ];
}

function navigation(path) {
  const isCurrent = ({ to, has }) => (has ? has(path) : path === to);
  return h(
    "nav",
    { id: "menu", "aria-label": "Console" },
    sections().map((section) =>
      link(`#${section.to}`, section.title, { "aria-current": isCurrent(section) && "page" }),
    ),
  );
}

// Where there is no room for all of it, the button opens what else the header has.
function header(path) {
  const menu = button("Menu", () => toggle(), {
    class: "menu-button",
    "aria-controls": "menu",
    "aria-expanded": "false",
  });
  const whole = h(
    "header",
    null,
    brand(),
    menu,
    navigation(path),
    h(
      "div",
      { class: "tools" },
      account(),
      themeSwitch(),
      button("?", showShortcuts, { class: "quiet", "aria-label": "Keyboard shortcuts" }),
    ),
  );
  const toggle = (isOpen) =>
    menu.setAttribute("aria-expanded", String(whole.classList.toggle("open-menu", isOpen)));
  whole.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !whole.classList.contains("open-menu")) return;
    toggle(false);
    menu.focus();
  });
  return whole;
}

// Nobody is to wonder why calls fail.
function faults() {
  if (!who.faults) return null;
  return h(
    "aside",
    { class: "banner", "aria-label": "Warning" },
    h("strong", null, "Faults are injected."),
    " This server delays calls, or lets them fail, on purpose: ",
    link("#/settings?q=inject", "by these rules"),
    ".",
  );
}

async function logOut() {
  await api.logOut();
  await start();
}

function showShortcuts() {
  dialog({
    title: "Keyboard",
    body: h(
      "dl",
      { class: "keys" },
      shortcuts().map(([keys, what]) => [
        h(
          "dt",
          null,
          keys.split("  ").map((key) => h("kbd", null, key)),
        ),
        h("dd", null, what),
      ]),
    ),
  });
}

// --- which page ---

// As it was typed, if somebody typed a percent sign.
function plain(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// {page, place}; without a page there is none at that address.
function find(path) {
  for (const [pattern, page, names] of ROUTES) {
    const found = pattern.exec(path);
    if (!found) continue;
    const place = names.map((name, i) => [name, plain(found[i + 1])]);
    return { page, place: Object.fromEntries(place) };
  }
  return { page: notPage, place: {} };
}

const here = () => (location.hash.slice(1) || "/").split("?");

// What the page would have been called that cannot be shown.
function headingOf(path, place) {
  const names = Object.values(place);
  return names.at(-1) ?? SECTIONS.find(({ to }) => to === path)?.title ?? "No page";
}

async function go() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const [path, search] = here();
  const place = h("main", { id: "main", tabindex: "-1" }, loading("Loading"));
  put(app, [header(path), health(), faults(), place]);
  const { page: load, place: at } = find(path);
  try {
    const page = await load(at, new URLSearchParams(search), signal);
    if (signal.aborted) return;
    document.title = `${page.title} · Trestle`;
    put(place, page.content);
  } catch (error) {
    if (signal.aborted) return;
    const heading = headingOf(path, at);
    document.title = `${heading} · Trestle`;
    put(place, [h("h1", null, heading), failure(error, go)]);
  }
}

const notPage = () => ({
  title: "No such page",
  content: [
    h("h1", null, "No such page"),
    notice(
      "empty",
      "Nothing is at this address",
      h("p", null, link("#/instances", "All instances")),
    ),
  ],
});

// --- the keyboard ---

let before = ""; // the first key of two

function isTyping(target) {
  return target.closest("input, textarea, select, dialog") !== null;
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const section = before === "g" && sections().find(({ key }) => key === event.key);
  before = event.key;
  if (section) {
    location.hash = `#${section.to}`;
    return;
  }
  const click = (selector) => document.querySelector(`main ${selector}:not([disabled])`)?.click();
  const actions = {
    "?": showShortcuts,
    n: () => click("[data-key=next]"),
    p: () => click("[data-key=previous]"),
    "/": () => {
      event.preventDefault();
      document.querySelector("main input, main textarea, main select")?.focus();
    },
  };
  actions[event.key]?.();
}

// A link to #main would be a page of its own.
function skip(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

// --- the beginning ---

function showLogin() {
  leaving.abort();
  app.replaceChildren(health(), login(start));
}

// Where somebody has a dialog open it stays, if it is he who logs in.
function logInAgain(principal) {
  if (document.querySelector("dialog.login-over")) return;
  loginOver(async () => {
    who = await api.session();
    if (who.principal === principal) return;
    document.querySelectorAll("dialog").forEach((each) => each.close());
    await go();
  });
}

// The page's module comes while it is asked who somebody is; whether it does is seen later.
async function start() {
  find(here()[0]).page.load?.().catch(() => {});
  try {
    who = await api.session();
  } catch (error) {
    app.replaceChildren(
      h("main", { id: "main" }, h("h1", null, "Trestle"), failure(error, start)),
    );
    return;
  }
  if (who.authentication && who.principal === "") showLogin();
  else await go();
}

api.whenUnauthenticated(() => {
  if (document.querySelector("dialog[open]")) {
    logInAgain(who.principal);
    return;
  }
  who = { authentication: true, session: false, principal: "" };
  showLogin();
});
document.querySelector(".skip").addEventListener("click", skip);
addEventListener("hashchange", () => {
  if (who.authentication && who.principal === "") return;
  go();
  scrollTo(0, 0);
  document.getElementById("main")?.focus(); // it is another page, to who hears it, too
});
addEventListener("keydown", onKey);
start();
