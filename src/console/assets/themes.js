// Light, dark, or what the system says. theme.js brings the choice back before anything is painted.
import { h } from "./dom.js";

const KEY = "trestle-theme";
const CHOICES = [
  ["", "Theme: system"],
  ["light", "Theme: light"],
  ["dark", "Theme: dark"],
];

function remember(choice) {
  try {
    if (choice) localStorage.setItem(KEY, choice);
    else localStorage.removeItem(KEY);
  } catch {
    // Where storage is forbidden the choice lasts as long as the page.
  }
}

export function themeSwitch() {
  const root = document.documentElement;
  const choose = (event) => {
    const choice = event.target.value;
    if (choice) root.dataset.theme = choice;
    else delete root.dataset.theme;
    remember(choice);
  };
  return h(
    "select",
    { class: "quiet", "aria-label": "Theme", onchange: choose },
    CHOICES.map(([value, text]) =>
      h("option", { value, selected: value === (root.dataset.theme ?? "") }, text),
    ),
  );
}
