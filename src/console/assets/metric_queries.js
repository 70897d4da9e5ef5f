// The queries that give what the server remembers of its metrics, for who wants the numbers of a
// page elsewhere: SQL over system/metrics, as docs/reference/metric-history.md has it.
import { link } from "./dom.js";
import { instanceUrl } from "./parts.js";

const number = (line) => `CAST(CAST(line['${line}'] AS STRING) AS FLOAT64) AS ${line}`;

const select = (lines) =>
  `SELECT _key,\n       ${lines.map(number).join(",\n       ")}\nFROM \`system/metrics\`\n`;

// The lines as they were last.
export const newestQuery = (lines) =>
  `${select(lines)}WHERE STARTS_WITH(_key, b'10s#server#')\nORDER BY _key DESC\nLIMIT 1`;

// The lines from then on (milliseconds since 1970), by "10s", "1m" or "1h".
export function sinceQuery(level, from, lines) {
  const start = new Date(from).toISOString().slice(0, 16);
  return (
    `${select(lines)}WHERE STARTS_WITH(_key, b'${level}#server#')\n` +
    `  AND _key >= b'${level}#server#${start}'`
  );
}

// A way to the editor with the query in it, beside what it gives. `place`: an instance, in any of
// which it runs; null: there is none, and it runs in the server's own editor.
export function queryLink(place, what, sql) {
  const more = `/query?${new URLSearchParams({ sql })}`;
  const address = place ? instanceUrl(place, more) : `#${more}`;
  return link(address, "SQL", { class: "sql", title: sql, "aria-label": `${what}, by SQL` });
}
