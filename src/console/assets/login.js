// Who may come in: a bearer token, which the server keeps and the page forgets.
import * as api from "./api.js";
import { failure, field, h, note } from "./dom.js";

function loginForm(about, done) {
  const token = h("input", {
    type: "password",
    name: "token",
    autocomplete: "current-password",
    required: true,
    spellcheck: "false",
  });
  const wrong = h("div", null);
  const button = h("button", { type: "submit", class: "primary" }, "Log in");
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      await api.logIn(token.value.trim());
      token.value = "";
      await done();
    } catch (error) {
      wrong.replaceChildren(failure(error));
      token.focus();
    }
    button.disabled = false;
  };
  queueMicrotask(() => token.focus());
  return h(
    "form",
    { class: "login-form", onsubmit: submit },
    h("span", { class: "mark", "aria-hidden": "true" }),
    about,
    field(
      "Token",
      token,
      "As clients send it: what “trestle token” printed, a signed token, or the " +
        "first administrator’s, from the file admin-token.",
    ),
    button,
    wrong,
  );
}

export function login(done) {
  document.title = "Log in · Trestle";
  const form = loginForm(h("h1", null, "Trestle"), done);
  return h("main", { id: "main", class: "login", tabindex: "-1" }, form);
}

// Over a dialog that is open, so that what has been typed there is not lost.
export function loginOver(done) {
  const about = [
    h("h2", { id: "login-title" }, "Your session has ended"),
    note("What you have typed is still there when you have logged in."),
  ];
  const form = loginForm(about, async () => {
    box.close();
    await done();
  });
  const box = h("dialog", { class: "login-over", "aria-labelledby": "login-title" }, form);
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}
