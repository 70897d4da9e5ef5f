// What this browser remembers for a page: for good ("local"), or until its window is closed
// ("session"). Where storage is forbidden nothing is remembered, and nobody is told.
const STORES = { local: () => localStorage, session: () => sessionStorage };

// "" if there is nothing.
export function kept(where, key) {
  try {
    return STORES[where]().getItem(key) ?? "";
  } catch {
    return "";
  }
}

// An empty text is forgotten.
export function keep(where, key, text) {
  try {
    if (text === "") STORES[where]().removeItem(key);
    else STORES[where]().setItem(key, text);
  } catch {
    // It holds until the page is left.
  }
}
