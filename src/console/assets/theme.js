// Before the page is painted: light or dark, if somebody chose. Else the system's choice counts.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("trestle-theme");
  } catch {
    // Storage may be forbidden: then there is no choice to remember.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
