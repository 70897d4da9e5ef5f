// Who may come in: a bearer token, which the server keeps and the page forgets.
import * as api from "./api.js";
import { failure, field, h } from "./dom.js";

export function login(done) {
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
  document.title = "Log in · Trestle";
  return h(
    "main",
    { id: "main", class: "login", tabindex: "-1" },
    h(
      "form",
      { onsubmit: submit },
      h("span", { class: "mark", "aria-hidden": "true" }),
      h("h1", null, "Trestle"),
      field(
        "Token",
        token,
        "As clients send it: what “trestle token” printed, a signed token, or the " +
          "first administrator’s, from the file admin-token.",
      ),
      button,
      wrong,
    ),
  );
}
