// What two answers of GetMetrics say: what there is, what rose in between, and how long calls took.
import * as api from "./api.js";

const PATH = "/v1/servers/self/metrics";
const FIELDS = "time,startTime,version,health,trouble,metrics(name,labels,value,count,buckets)";
const PREFIX = "trestle_";
const OWN = "trestle.insight.v1.Insight/"; // what asks for all this is not what is asked about

const millisecondsOf = (text) => Date.parse(text);

const keyOf = (metric) => {
  const labels = Object.entries(metric.labels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${metric.name} ${JSON.stringify(labels)}`;
};

// The metrics of these names, without their prefix, or all; what no page looks at is left out.
export function askMetrics(signal, names = []) {
  const search = new URLSearchParams({ fields: FIELDS });
  for (const name of names) search.append("names", PREFIX + name);
  return api.get(`${PATH}?${search}`, { signal });
}

// An answer, by the names of its series.
export function read(answer) {
  const byKey = new Map();
  const byName = new Map();
  for (const metric of answer.metrics ?? []) {
    byKey.set(keyOf(metric), metric);
    const name = metric.name.replace(PREFIX, "");
    byName.set(name, [...(byName.get(name) ?? []), metric]);
  }
  return {
    time: millisecondsOf(answer.time),
    started: millisecondsOf(answer.startTime),
    version: answer.version,
    byKey,
    byName,
  };
}

const countOf = (metric) => Number(metric?.count ?? 0);

// How many were at most `bound`; buckets with nothing in them are not there.
function countUpTo(metric, bound) {
  let count = 0;
  for (const bucket of metric?.buckets ?? [])
    if (bucket.upTo <= bound) count = Number(bucket.count ?? 0);
  return count;
}

// The differences of several histograms as one: counts by bound, rising, and how many in all.
function riseOf(pairs) {
  const counts = new Map();
  let all = 0;
  for (const [now, before] of pairs) {
    all += countOf(now) - countOf(before);
    let below = 0;
    for (const { upTo, count } of now.buckets ?? []) {
      const risen = Number(count ?? 0) - countUpTo(before, upTo);
      counts.set(upTo, (counts.get(upTo) ?? 0) + risen - below);
      below = risen;
    }
  }
  return { counts: [...counts].sort(([a], [b]) => a - b), all };
}

// What is in a bucket is taken to be spread evenly; its lower bound is half the upper. Null: there
// were none.
function quantileOf({ counts, all }, share) {
  if (all <= 0) return null;
  let below = 0;
  let last = null;
  for (const [bound, count] of counts) {
    if (count > 0 && below + count >= share * all)
      return (bound / 2) * (1 + (share * all - below) / count);
    below += count;
    last = bound;
  }
  return last;
}

// Two answers, one after the other.
export class Look {
  constructor(now, before) {
    this.now = now;
    this.before = before?.started === now.started ? before : null;
    this.seconds = this.before ? Math.max((now.time - before.time) / 1000, 0.001) : 0;
  }

  series(name) {
    return this.now.byName.get(name) ?? [];
  }

  value(name) {
    return this.series(name).reduce((sum, metric) => sum + (metric.value ?? 0), 0);
  }

  rise(metric) {
    const before = this.before?.byKey.get(keyOf(metric));
    return Math.max((metric.value ?? 0) - (before?.value ?? 0), 0);
  }

  // By the second; null: nobody has looked before.
  rate(name, filter = () => true) {
    if (!this.before) return null;
    const metrics = this.series(name).filter((metric) => filter(metric.labels ?? {}));
    return metrics.reduce((sum, metric) => sum + this.rise(metric), 0) / this.seconds;
  }

  pairs(filter) {
    return this.series("rpc_seconds")
      .filter((metric) => filter(metric.labels ?? {}))
      .map((metric) => [metric, this.before?.byKey.get(keyOf(metric))]);
  }

  // How long calls took that ended in between: in seconds, or null.
  quantile(share, filter) {
    return this.before ? quantileOf(riseOf(this.pairs(filter)), share) : null;
  }

  // Every method that was called, with its app profile.
  methods() {
    return this.pairs((labels) => !labels.method.startsWith(OWN)).map(([metric]) => {
      const { method, app_profile: profile = "" } = metric.labels;
      const isOf = (labels) => labels.method === method && (labels.app_profile ?? "") === profile;
      const failed = (labels) => isOf(labels) && labels.code !== "OK";
      const sum = (filter) =>
        this.series("rpcs_total")
          .filter(({ labels }) => filter(labels))
          .reduce((all, each) => all + each.value, 0);
      return {
        method,
        profile,
        calls: sum(isOf),
        errors: sum(failed),
        callRate: this.rate("rpcs_total", isOf),
        errorRate: this.rate("rpcs_total", failed),
        p50: this.quantile(0.5, isOf),
        p99: this.quantile(0.99, isOf),
      };
    });
  }
}

export const isClients = (labels) => !labels.method.startsWith(OWN);
export const shortName = (method) => method.slice(method.lastIndexOf(".", method.indexOf("/")) + 1);
