// Elements, and the parts that every page is made of. Text is always text: nothing here reads HTML.

export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children
      .flat(Infinity)
      .filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

export const link = (href, text, more) => h("a", { href, ...more }, text);

export const button = (text, onclick, more) =>
  h("button", { type: "button", onclick, ...more }, text);

// One of several in a row of a table, which says which of the rows it is for.
export const rowButton = (text, what, onclick, more) =>
  button(text, onclick, { class: "small quiet", "aria-label": what, ...more });

export const note = (...content) => h("p", { class: "note" }, ...content);

// What changes by itself, and is heard, too.
export const status = (...content) => h("span", { class: "note", role: "status" }, ...content);

// Names and what they are, for [name, value] of those that have a value.
export const facts = (pairs) =>
  h(
    "dl",
    { class: "facts" },
    pairs
      .filter(([, value]) => value !== undefined && value !== "" && value !== false)
      .map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
  );

// A number, which stands under the others of its column.
export const number = (text) => h("td", { class: "number" }, text);

// `kind`: error, warning, or empty: there is nothing to show.
export function notice(kind, title, ...more) {
  return h(
    "div",
    { class: `notice ${kind}`, role: kind === "error" ? "alert" : "status" },
    h("strong", null, title),
    more.map((child) => (typeof child === "string" ? h("p", null, child) : child)),
  );
}

export const loading = (what) =>
  h(
    "div",
    { class: "notice loading", role: "status" },
    h("span", { class: "spinner", "aria-hidden": "true" }),
    what,
  );

// What went wrong, in words: the server's, or ours for who typed something. Anything else that is
// thrown is a mistake of the page's, and goes to the browser's log, too.
export function failure(error, retry, refused = "You may not see this") {
  if (!("code" in error) && error.constructor !== Error) console.error(error);
  const titles = { 0: "No answer", 403: refused, 404: "There is no such thing" };
  const title = titles[error.code] ?? "That did not work";
  return notice("error", title, error.message, retry && button("Try again", retry));
}

// --- the keyboard's place, when what had it is replaced ---

const nameOf = (element) => element.getAttribute("aria-label") ?? element.textContent;
const describe = (element) => ({ tagName: element.tagName, name: nameOf(element) });

// What has the focus in the place, so that it is known again in what comes there; null: nothing.
function focusIn(place) {
  const element = document.activeElement;
  if (!element || element === place || !place.contains(element)) return null;
  return describe(element);
}

const isFocusLost = () => !document.activeElement || document.activeElement === document.body;

const likeIn = (place, lost) =>
  [...place.querySelectorAll(lost.tagName)].find((element) => nameOf(element) === lost.name);

// To the like of it, or else to the place itself.
function giveFocus(place, lost) {
  if (!lost || !isFocusLost()) return;
  const like = likeIn(place, lost);
  if (!like) place.tabIndex = -1;
  (like ?? place).focus({ preventScroll: true });
}

// What had opened a dialog that was closed when it was gone: until it is there again, or another
// page is.
let returning = null;
addEventListener("hashchange", () => (returning = null));

let filled = null; // the place that was filled last: there or soon, if it is busy, what is meant is

function returnTo(back, opener) {
  const like = back?.isConnected ? back : opener && likeIn(document.body, opener);
  if (like) like.focus();
  else if (filled?.isConnected && !filled.hasAttribute("aria-busy")) giveFocus(filled, opener);
  else returning = opener;
}

// `content` may have arrays within arrays, and what is not there, in it.
export function put(place, content) {
  const lost = focusIn(place);
  place.replaceChildren(...[content].flat(Infinity).filter(Boolean));
  giveFocus(place, lost);
}

// Puts into `place` what `load` gives, and meanwhile, and if it fails, something that says so.
export async function fill(place, what, load) {
  const lost = focusIn(place);
  filled = place;
  place.replaceChildren(loading(what));
  place.setAttribute("aria-busy", "true");
  try {
    put(place, await load());
    giveFocus(place, lost ?? returning);
    returning = null;
  } catch (error) {
    if (error.name === "AbortError") return;
    place.replaceChildren(failure(error, () => fill(place, what, load)));
  } finally {
    place.removeAttribute("aria-busy");
  }
}

// Calls `act` again and again while the page is to be seen, until it is left.
export function every(ms, act, signal) {
  const timer = setInterval(() => {
    if (document.visibilityState === "visible") act();
  }, ms);
  signal.addEventListener("abort", () => clearInterval(timer));
}

const classOf = (column) => (column.number ? "number" : column.class);

function cellOf(content, column) {
  const isCell = content instanceof HTMLTableCellElement;
  const cell = isCell ? content : h("td", { class: classOf(column) }, content);
  cell.dataset.title = column.title;
  return cell;
}

// columns: [{title, number, class}], rows: arrays of elements or texts. Scrolls sideways by itself.
// With the class "stacked" each row is a block on a telephone.
export function table(caption, columns, rows, name) {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      { class: name },
      h("caption", { class: "hidden" }, caption),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          columns.map((column) =>
            h(
              "th",
              { scope: "col", class: classOf(column) },
              column.title === "" ? h("span", { class: "hidden" }, "Actions") : column.title,
            ),
          ),
        ),
      ),
      h(
        "tbody",
        null,
        rows.map((row) =>
          h(
            "tr",
            null,
            row.map((content, i) => cellOf(content, columns[i])),
          ),
        ),
      ),
    ),
  );
}

let fieldCount = 0;

// A label and what it is for.
export function field(label, input, hint) {
  const id = `field-${++fieldCount}`;
  input.id = id;
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    input,
    hint && h("span", { class: "hint", id: `${id}-hint` }, hint),
  );
}

export function select(options, chosen) {
  return h(
    "select",
    null,
    options.map(([value, text]) =>
      h("option", { value, selected: String(value) === String(chosen) }, text),
    ),
  );
}

// --- what lies over the page ---

// Asks; `act` does what was agreed to, and the dialog stays, with what went wrong, if it fails.
export function dialog({ title, body, yes, isDangerous, act }) {
  const back = document.activeElement;
  const opener = back && describe(back);
  const wrong = h("div", { class: "wrong" });
  const agree = h("button", { type: "submit", class: isDangerous ? "danger" : "primary" }, yes);
  const cancel = button(act ? "Cancel" : "Close", () => box.close());
  const form = h(
    "form",
    { method: "dialog" },
    h("h2", { id: "dialog-title" }, title),
    body,
    wrong,
    h("div", { class: "actions" }, cancel, act && agree),
  );
  const box = h("dialog", { "aria-labelledby": "dialog-title" }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!act) return;
    agree.disabled = true;
    wrong.replaceChildren();
    try {
      await act();
      box.close();
    } catch (error) {
      wrong.replaceChildren(failure(error, null, "You may not do this"));
    }
    agree.disabled = false;
  });
  box.addEventListener("close", () => {
    box.remove();
    returnTo(back, opener);
  });
  document.body.append(box);
  box.showModal();
  if (isDangerous || !act) cancel.focus(); // what cannot be undone wants more than one key
  return box;
}

// Says what has been done, for some seconds, and to who cannot see it, too.
export function toast(...content) {
  let place = document.getElementById("toasts");
  if (!place) {
    place = h("div", { id: "toasts", role: "status", "aria-live": "polite" });
    document.body.append(place);
  }
  const message = h("div", { class: "toast" }, ...content);
  place.append(message);
  setTimeout(() => message.remove(), 6000);
}

// A file made here and now.
export function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
