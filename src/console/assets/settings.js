// The server's settings: what each is, what it would be, and where that came from. Those that
// somebody has set come first.
import * as api from "./api.js";
import { field, h, notice, table } from "./dom.js";

const PATH = "/v1/servers/self/settings";
const isSet = (setting) => Boolean(setting.source);

// What is sought may be words of the sentence, too.
function has(setting, words) {
  const text = [setting.name, setting.value, setting.help, setting.source].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

const code = (text) => (text ? h("code", null, text) : h("em", null, "none"));

function row(setting) {
  return [
    h("td", { class: "setting" }, h("code", null, setting.name), h("p", null, setting.help)),
    h(
      "td",
      { class: isSet(setting) ? "code set" : "code", "data-title": "Value" },
      code(setting.value),
    ),
    h("td", { class: "code", "data-title": "Default" }, code(setting.defaultValue)),
    h(
      "td",
      { class: "code", "data-title": "From" },
      isSet(setting) ? code(setting.source) : h("em", null, "default"),
    ),
  ];
}

function listing(settings) {
  if (settings.length === 0)
    return notice("empty", "No setting has these words", "The field above says which are sought.");
  const columns = [
    { title: "Setting" },
    { title: "Value" },
    { title: "Default" },
    { title: "From" },
  ];
  const shown = table("Settings", columns, settings.map(row));
  shown.querySelector("table").classList.add("settings");
  return shown;
}

function countText(shown, all) {
  const set = shown.filter(isSet).length;
  const which = shown.length === all.length ? `${all.length}` : `${shown.length} of ${all.length}`;
  return `${which} settings, ${set} of them set`;
}

export async function settings(_place, parameters, signal) {
  const { settings: all = [] } = await api.get(PATH, { signal });
  const order = (a, b) => isSet(b) - isSet(a) || (a.name < b.name ? -1 : 1);
  all.sort(order);
  const input = h("input", { type: "search", name: "search", value: parameters.get("q") ?? "" });
  const count = h("span", { class: "note", role: "status" });
  const results = h("div", { class: "results" });
  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = all.filter((setting) => has(setting, words));
    count.textContent = countText(shown, all);
    results.replaceChildren(listing(shown));
  };
  input.addEventListener("input", show);
  show();
  return {
    title: "Settings",
    content: [
      h("h1", null, "Settings"),
      h(
        "p",
        { class: "note" },
        "What the server was started with: by flags, the environment (TRESTLE_…) or a file. ",
        "Changing one takes a restart.",
      ),
      h("div", { class: "controls found" }, field("Search", input), count),
      results,
    ],
  };
}
