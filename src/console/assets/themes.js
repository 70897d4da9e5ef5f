// The switch of light, dark, or what the system says. theme.js brings the choice back before
// anything is painted.
import { h } from "./dom.js";
import { keep } from "./kept.js";

const KEY = "trestle-theme"; // theme.js has it, too
const CHOICES = [
  ["", "Theme: system"],
  ["light", "Theme: light"],
  ["dark", "Theme: dark"],
];

const page = document.documentElement.dataset;
const system = matchMedia("(prefers-color-scheme: dark)");

function apply() {
  page.theme = page.choice || (system.matches ? "dark" : "light");
}

system.addEventListener("change", apply);

export function themeSwitch() {
  const choose = (event) => {
    page.choice = event.target.value;
    keep("local", KEY, page.choice);
    apply();
  };
  return h(
    "select",
    { class: "quiet", "aria-label": "Theme", onchange: choose },
    CHOICES.map(([value, text]) => h("option", { value, selected: value === page.choice }, text)),
  );
}
