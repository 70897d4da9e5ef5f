// The server's settings: what each is, what it would be, and where that came from. Those that
// somebody has set come first.
import * as api from "./api.js";
import { field, h, note, notice, status, table } from "./dom.js";
import { hasWords } from "./parts.js";

const PATH = "/v1/servers/self/settings";
const isSet = (setting) => Boolean(setting.source);

// What is sought may be words of the sentence, too.
const has = (setting, search) =>
  hasWords(search, [setting.name, setting.value, setting.help, setting.source]);

const code = (text) => (text ? h("code", null, text) : h("em", null, "none"));

function row(setting) {
  return [
    h("td", { class: "setting" }, h("code", null, setting.name), h("p", null, setting.help)),
    h(
      "td",
      { class: isSet(setting) ? "code set" : "code" },
      code(setting.value),
    ),
    code(setting.defaultValue),
    isSet(setting) ? code(setting.source) : h("em", null, "default"),
  ];
}

function listing(settings) {
  if (settings.length === 0)
    return notice("empty", "No setting has these words", "The field above says which are sought.");
  const columns = [
    { title: "Setting" },
    { title: "Value", class: "code" },
    { title: "Default", class: "code" },
    { title: "From", class: "code" },
  ];
  return table("Settings", columns, settings.map(row), "settings stacked");
}

function summary(shown, all) {
  const set = shown.filter(isSet).length;
  const which = shown.length === all.length ? `${all.length}` : `${shown.length} of ${all.length}`;
  return `${which} settings, ${set} of them set`;
}

export async function settings(_place, parameters, signal) {
  const { settings: all = [] } = await api.get(PATH, { signal });
  const order = (a, b) => isSet(b) - isSet(a) || (a.name < b.name ? -1 : 1);
  all.sort(order);
  const input = h("input", { type: "search", name: "search", value: parameters.get("q") ?? "" });
  const count = status();
  const results = h("div", { class: "results" });
  const show = () => {
    const shown = all.filter((setting) => has(setting, input.value));
    count.textContent = summary(shown, all);
    results.replaceChildren(listing(shown));
  };
  input.addEventListener("input", show);
  show();
  return {
    title: "Settings",
    content: [
      h("h1", null, "Settings"),
      note(
        "What the server was started with: by flags, the environment (TRESTLE_…) or a file. ",
        "Changing one takes a restart.",
      ),
      h("div", { class: "controls" }, field("Search", input), count),
      results,
    ],
  };
}
