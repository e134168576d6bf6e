// How figures are written, as `anabranch status` writes them. Everything is text: names of topics and groups are
// foreign input, and no function here or elsewhere on the page makes markup from them.

export const NONE = "–";

export function count(value) {
  return value === null || value === undefined ? NONE : Math.round(value).toLocaleString("en-US");
}

export function seconds(value) {
  if (value === null || value === undefined) return NONE;
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 120) return `${Math.round(value)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  return value < 172800 ? `${Math.round(value / 3600)} h` : `${Math.round(value / 86400)} d`;
}

export function milliseconds(value) {
  if (value === null || value === undefined) return NONE;
  return value < 10000 ? `${Math.round(value).toLocaleString("en-US")} ms` : seconds(value / 1000);
}

export function bytes(value) {
  if (value === null || value === undefined) return NONE;
  return value >= 1e6 ? `${(value / 1e6).toFixed(1)} MB/s` : `${(value / 1e3).toFixed(1)} kB/s`;
}

export function clock(time) {
  return new Date(time * 1000).toISOString().slice(11, 19) + " UTC";
}

const TONES = {
  running: "good", opening: "warn", waiting: "warn", degraded: "bad", paused: "warn", lost: "bad", parked: "bad",
  "failed over": "warn", "not running": "bad",
};

export function tone(state) {
  return TONES[state] || "rest";
}

// What one flow does, in a few words: below its name in the picture.
export function brief(flow) {
  if (!flow.tasks) return flow.state;
  const lag = flow.lag === null ? "lag unknown" : `lag ${count(flow.lag)}`;
  const age = flow.lagSeconds ? `, ${seconds(flow.lagSeconds)}` : "";
  return `${flow.state} · ${count(flow.recordsPerSecond)} rec/s · ${lag}${age}`;
}
