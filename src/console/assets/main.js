// The frame around the pages, and which page an address stands for:
//
//     #/                                       instances
//     #/operations                             operations
//     #/audit                                  the audit log
//     #/slow                                   slow requests
//     #/metrics                                the server's metrics
//     #/settings                               the server's settings
//     #/datastore                              Datastore's databases
//     #/d/PROJECT/DATABASE                     one of them: its kinds
//     #/d/PROJECT/DATABASE/entities?…          … and entities, entity, gql, indexes
//     #/p/PROJECT/i/INSTANCE                   an instance: its tables
//     #/p/PROJECT/i/INSTANCE/query             … and by the same pattern clusters, backups
//     #/p/PROJECT/i/INSTANCE/advice            what the schema advisor says; also of a table
//     #/p/PROJECT/i/INSTANCE/t/TABLE           a table
//     #/p/PROJECT/i/INSTANCE/t/TABLE/rows?…    its rows
//     #/p/PROJECT/i/INSTANCE/t/TABLE/heat?…    its heat
import { advice } from "./advice.js";
import * as api from "./api.js";
import { audit } from "./audit.js";
import { backups, clusters, tables } from "./instance.js";
import { databases, kinds } from "./datastore.js";
import { entities } from "./datastore_entities.js";
import { entity } from "./datastore_entity.js";
import { gql } from "./datastore_gql.js";
import { indexes } from "./datastore_indexes.js";
import { dialog, failure, h, link, loading, notice } from "./dom.js";
import { heat } from "./heat.js";
import { instances } from "./instances.js";
import { login } from "./login.js";
import { metrics } from "./metrics.js";
import { operations } from "./operations.js";
import { query } from "./query.js";
import { rows } from "./rows.js";
import { settings } from "./settings.js";
import { slow } from "./slow.js";
import { table } from "./table.js";
import { themeSwitch } from "./themes.js";

const INSTANCE = "/p/([^/]+)/i/([^/]+)";
const DATABASE = "/d/([^/]+)/([^/]+)";
const ROUTES = [
  [/^\/?$/, instances, []],
  [/^\/operations$/, operations, []],
  [/^\/audit$/, audit, []],
  [/^\/slow$/, slow, []],
  [/^\/metrics$/, metrics, []],
  [/^\/settings$/, settings, []],
  [/^\/datastore$/, databases, []],
  [new RegExp(`^${DATABASE}$`), kinds, ["project", "database"]],
  [new RegExp(`^${DATABASE}/entities$`), entities, ["project", "database"]],
  [new RegExp(`^${DATABASE}/entity$`), entity, ["project", "database"]],
  [new RegExp(`^${DATABASE}/gql$`), gql, ["project", "database"]],
  [new RegExp(`^${DATABASE}/indexes$`), indexes, ["project", "database"]],
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

const SHORTCUTS = [
  ["?", "this list"],
  ["g i", "instances"],
  ["g d", "Datastore"],
  ["g o", "operations"],
  ["g a", "the audit log"],
  ["g l", "slow requests"],
  ["g m", "metrics"],
  ["g s", "settings"],
  ["/", "the first field of the page"],
  ["n  p", "next and previous rows or results"],
  ["Ctrl + Enter", "run the query"],
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
  if (!who.authentication) return null;
  return h(
    "span",
    { class: "account" },
    h("span", { class: "principal" }, who.principal),
    who.session && h("button", { type: "button", onclick: logOut }, "Log out"),
  );
}

function navigation(path) {
  const isInstances = path === "/" || path.startsWith("/p/");
  const isDatastore = path === "/datastore" || path.startsWith("/d/");
  return h(
    "nav",
    { "aria-label": "Console" },
    link("#/", "Instances", { "aria-current": isInstances && "page" }),
    link("#/datastore", "Datastore", { "aria-current": isDatastore && "page" }),
    link("#/operations", "Operations", { "aria-current": path === "/operations" && "page" }),
    link("#/audit", "Audit log", { "aria-current": path === "/audit" && "page" }),
    link("#/slow", "Slow requests", { "aria-current": path === "/slow" && "page" }),
    link("#/metrics", "Metrics", { "aria-current": path === "/metrics" && "page" }),
    link("#/settings", "Settings", { "aria-current": path === "/settings" && "page" }),
  );
}

function frame(path, place) {
  app.replaceChildren(
    h(
      "header",
      null,
      brand(),
      navigation(path),
      h("span", { class: "space" }),
      account(),
      themeSwitch(),
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          onclick: showShortcuts,
          "aria-label": "Keyboard shortcuts",
        },
        "?",
      ),
    ),
    ...[faults()].filter(Boolean),
    place,
  );
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
      SHORTCUTS.map(([keys, what]) => [
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

function find(path) {
  for (const [pattern, page, names] of ROUTES) {
    const found = pattern.exec(path);
    if (found) {
      const place = names.map((name, i) => [name, decodeURIComponent(found[i + 1])]);
      return { page, place: Object.fromEntries(place) };
    }
  }
  return null;
}

async function go() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const [path, search] = (location.hash.slice(1) || "/").split("?");
  const place = h("main", { id: "main", tabindex: "-1" }, loading("Loading"));
  frame(path, place);
  const found = find(path);
  try {
    const page = found
      ? await found.page(found.place, new URLSearchParams(search), signal)
      : notPage();
    if (signal.aborted) return;
    document.title = `${page.title} · Trestle`;
    place.replaceChildren(...page.content.flat(Infinity).filter(Boolean));
  } catch (error) {
    if (signal.aborted) return;
    if (!("code" in error)) console.error(error);
    place.replaceChildren(h("h1", null, "No page"), failure(error, go));
  }
}

const notPage = () => ({
  title: "No such page",
  content: [
    h("h1", null, "No such page"),
    notice("empty", "Nothing is at this address", link("#/", "All instances")),
  ],
});

// --- the keyboard ---

let before = ""; // the first key of two

function isTyping(target) {
  return target.closest("input, textarea, select, dialog") !== null;
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const keys = before + event.key;
  before = event.key === "g" ? "g" : "";
  const click = (selector) => document.querySelector(`main ${selector}:not([disabled])`)?.click();
  const actions = {
    "?": showShortcuts,
    gi: () => (location.hash = "#/"),
    gd: () => (location.hash = "#/datastore"),
    go: () => (location.hash = "#/operations"),
    ga: () => (location.hash = "#/audit"),
    gl: () => (location.hash = "#/slow"),
    gm: () => (location.hash = "#/metrics"),
    gs: () => (location.hash = "#/settings"),
    n: () => click("[data-key=next]"),
    p: () => click("[data-key=previous]"),
    "/": () => {
      event.preventDefault();
      document.querySelector("main input, main textarea, main select")?.focus();
    },
  };
  actions[keys]?.();
}

// A link to #main would be a page of its own.
function skip(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

// --- the beginning ---

function showLogin() {
  leaving.abort();
  app.replaceChildren(login(start));
}

async function start() {
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
  who = { authentication: true, session: false, principal: "" };
  showLogin();
});
document.querySelector(".skip").addEventListener("click", skip);
addEventListener("hashchange", () => {
  if (!who.authentication || who.principal !== "") go();
});
addEventListener("keydown", onKey);
start();
