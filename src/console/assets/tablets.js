// The tablets of a table, by SampleRowKeys: each sample ends one, and says how many bytes lie
// before that end.
import * as api from "./api.js";
import { fromBase64 } from "./bytes.js";

// [{from, to, start, end}]: keys as bytes, of which the first and the last are empty, and bytes of
// the table before and up to the end of the tablet.
export async function sampleTablets(name, signal) {
  const tablets = [];
  let from = new Uint8Array(0),
    start = 0;
  for await (const sample of api.stream("GET", `${api.pathOf(name)}:sampleRowKeys`, undefined, {
    signal,
  })) {
    const to = fromBase64(sample.rowKey),
      end = Number(sample.offsetBytes ?? 0);
    tablets.push({ from, to, start, end });
    from = to;
    start = end;
  }
  return tablets;
}
