// Axes: from values to pixels, and where their ticks go.
const WORDS = { seconds: (s) => seconds(s), count: (n) => compact(n), bytes: (n) => `${+(n / 2 ** 30).toPrecision(3)} GiB` };

// As the tables write it.
function seconds(s) {
  if (s === null || s === undefined) return "never";
  if (s < 0.9995) return s ? `${(s * 1000).toFixed(s < 0.00995 ? 1 : 0)} ms` : "0 s";
  if (s < 119.5) return `${s.toFixed(s < 99.95 ? 1 : 0)} s`;
  const whole = Math.round(s), minutes = Math.round(s / 60);
  return whole < 3600 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// The wall clock where the run started.
const wall = (t) => new Date(Date.parse(`${data.started}Z`) + t * 1000).toISOString().slice(11, 19);

function clock(t) {
  const sign = t < 0 ? "-" : "", whole = Math.abs(t);
  const h = Math.floor(whole / 3600), m = Math.floor((whole % 3600) / 60), s = Math.floor(whole % 60);
  const pad = (n) => String(n).padStart(2, "0");
  return sign + (h ? `${h}:${pad(m)}:${pad(s)}` : `${m}:${pad(s)}`);
}

function compact(n) {
  if (n >= 1e6) return `${+(n / 1e6).toPrecision(3)}M`;
  if (n >= 1e4) return `${+(n / 1e3).toPrecision(3)}k`;
  return String(+n.toPrecision(3));
}

// A step of 1, 2 or 5 times a power of ten; for time axes also what a clock likes.
function step(span, want, time) {
  if (time && span / want > 1) {
    return [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400]
      .find((s) => span / s <= want) || 172800;
  }
  const raw = span / want, base = 10 ** Math.floor(Math.log10(raw));
  return base * [1, 2, 5, 10].find((m) => base * m >= raw);
}

function linear(low, high, from, to) {
  const top = high > low ? high : low + 1;
  const scale = (v) => from + ((v - low) / (top - low)) * (to - from);
  scale.ticks = (want, time) => {
    const by = step(top - low, want, time), found = [];
    for (let v = Math.ceil(low / by) * by; v <= top + by * 1e-9 && found.length < 100; v += by) found.push(v);
    return found;
  };
  scale.invert = (p) => low + ((p - from) / (to - from)) * (top - low);
  return scale;
}

function logarithmic(low, high, from, to) {
  const a = Math.log10(low), b = Math.log10(Math.max(high, low * 10));
  const scale = (v) => from + ((Math.log10(Math.max(v, low)) - a) / (b - a)) * (to - from);
  scale.ticks = () => {
    const found = [], marks = b - a < 2 ? [1, 2, 5] : b - a < 4 ? [1, 3] : [1];
    for (let power = Math.floor(a); power <= Math.ceil(b); power++)
      for (const m of marks) { const v = m * 10 ** power; if (v >= low * 0.999 && v <= high * 1.001) found.push(v); }
    return found;
  };
  return scale;
}

// First position in a sorted list whose value is at least v.
function lower(list, v) {
  let low = 0, high = list.length;
  while (low < high) { const mid = (low + high) >> 1; if (list[mid] < v) low = mid + 1; else high = mid; }
  return low;
}
