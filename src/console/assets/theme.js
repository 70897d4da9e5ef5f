// Before the page is painted: whether it is light or dark, as somebody chose, or as the system is.
// The page's data-theme is always one of the two; themes.js follows what changes.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("trestle-theme");
  } catch {
    // Storage may be forbidden: then there is no choice to remember.
  }
  const page = document.documentElement.dataset;
  page.choice = chosen === "light" || chosen === "dark" ? chosen : "";
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  page.theme = page.choice || (isDark ? "dark" : "light");
})();
