// The queries that have run here, of an instance: this browser remembers the last ones.
import { button, h, put, table } from "./dom.js";
import { countText, momentText } from "./formats.js";
import { keep, kept } from "./kept.js";

const MOST = 30;

const COLUMNS = [
  { title: "Query", class: "code" },
  { title: "Rows", number: true },
  { title: "Took", number: true },
  { title: "When (UTC)", class: "time" },
  { title: "", class: "narrow" },
];

export class QueryHistory {
  // `take` is called with a query that somebody wants again.
  constructor(instance, take) {
    this.key = `trestle-queries ${instance}`;
    this.take = take;
    this.shown = h("div", null);
    this.summary = h("summary", null);
    this.element = h(
      "details",
      { class: "query-history" },
      this.summary,
      this.shown,
    );
    this.show();
  }

  all() {
    try {
      return JSON.parse(kept("local", this.key) || "[]");
    } catch {
      return [];
    }
  }

  // What ran; the same query stands once.
  add(sql, rows, millis) {
    const others = this.all().filter((each) => each.sql !== sql);
    const all = [{ sql, rows, millis, at: Date.now() }, ...others].slice(0, MOST);
    keep("local", this.key, JSON.stringify(all));
    this.show();
  }

  forget() {
    keep("local", this.key, "");
    this.show();
    this.summary.focus();
  }

  row({ sql, rows, millis, at }) {
    return [
      sql,
      countText(rows),
      `${countText(millis)} ms`,
      momentText(at),
      button("Edit", () => this.take(sql), { class: "small quiet", "aria-label": `Edit ${sql}` }),
    ];
  }

  show() {
    const all = this.all();
    this.element.hidden = all.length === 0;
    this.summary.textContent = `Earlier queries (${all.length})`;
    put(this.shown, [
      table("Earlier queries", COLUMNS, all.map((each) => this.row(each)), "stacked"),
      h("div", { class: "controls" }, button("Forget them", () => this.forget())),
    ]);
  }
}
