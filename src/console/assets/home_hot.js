// Which ranges of keys were hot within a day, the hottest first, with the way to each on its map.
import { h, link, table } from "./dom.js";
import { dateText, percentText } from "./formats.js";
import { endText, rangeText, startText } from "./heat_data.js";
import { heatUrl, hotTabletsOf } from "./hot_tablets.js";
import { placeOf, tableUrl } from "./parts.js";

const SHOWN = 8;

const COLUMNS = [
  { title: "Table" },
  { title: "From", class: "key" },
  { title: "To (exclusive)", class: "key" },
  { title: "Processors, at most", number: true },
  { title: "Last (UTC)", class: "time" },
  { title: "", class: "narrow" },
];

const idOf = ({ table: name, start, end }) => [name, start, end].join(" ");

// A range is told once for each quarter of an hour: here once, as it was at its hottest.
function onceEach(found) {
  const ranges = new Map();
  for (const hot of found) {
    const known = ranges.get(idOf(hot)) ?? hot;
    ranges.set(idOf(hot), {
      ...hot,
      percent: Math.max(known.percent, hot.percent),
      endTime: known.endTime > hot.endTime ? known.endTime : hot.endTime,
    });
  }
  return [...ranges.values()].sort((a, b) => b.percent - a.percent);
}

function rowOf(hot) {
  const place = placeOf(hot.table);
  return [
    link(tableUrl(place), place.table),
    startText(hot.start),
    endText(hot.end),
    percentText(hot.percent),
    dateText(hot.endTime),
    link(heatUrl(place, hot), "Heat map", {
      "aria-label": `Heat of ${place.table} ${rangeText(hot.start, hot.end)}`,
    }),
  ];
}

// Of these instances; nothing if there are none.
export async function hotRanges(instances, signal) {
  const found = await Promise.all(instances.map(({ name }) => hotTabletsOf(name, signal)));
  const ranges = onceEach(found.flat());
  if (ranges.length === 0) return "";
  const rows = ranges.slice(0, SHOWN).map(rowOf);
  return [h("h2", null, "Hot ranges"), table("Hot ranges", COLUMNS, rows, "stacked")];
}
