// Requests: each as a point, and all as counts over time.
const R = data.requests, FATES = data.fates;
const FATE_SHAPE = { completed: "dot", error: "diamond", lost: "cross", void: "ring", unfinished: "triangle" };
const chosen = { model: null, measure: "duration" };

const latencyOf = (i) => (chosen.measure === "duration" ? R.duration[i] : R.ttft[i]);
const shown = (i) => (chosen.model === null || R.model[i] === chosen.model) && latencyOf(i) !== null;

function latencyScale(box) {
  let low = Infinity, high = 0;
  for (let i = 0; i < R.t.length; i++) if (shown(i)) { const v = Math.max(latencyOf(i), 0.001); if (v < low) low = v; if (v > high) high = v; }
  return high ? logarithmic(low * 0.8, high * 1.25, box.bottom, box.top) : null;
}

chart("latency", {
  title: "Latency of every request", height: 300,
  note: `by when it was due to be sent, logarithmic${Object.keys(data.altered).length ? "; a ring marks an altered answer" : ""}${data.left_out ? `; ${data.left_out} more requests than can be drawn are left out here, and nowhere else` : ""}`,
  label: `Latency over time of ${R.t.length} requests, coloured by outcome, with faults shaded`,
  paint(g) {
    const y = latencyScale(g.box);
    if (!y) return nothing(g, "no request");
    valueAxis(g, y, WORDS.seconds);
    clip(g);
    let count = 0;
    const first = lower(R.t, g.from), last = lower(R.t, g.to + 1e-9);
    FATES.forEach((fate, f) => {
      g.ctx.fillStyle = g.ctx.strokeStyle = palette[fate];
      g.ctx.lineWidth = 1.6;
      const small = fate === "completed";
      g.ctx.globalAlpha = small ? 0.65 : 1;
      for (let i = first; i < last; i++) {
        if (R.fate[i] !== f || !shown(i)) continue;
        const px = g.x(R.t[i]), py = y(latencyOf(i));
        if (R.id[i] in data.altered) {
          g.ctx.save();
          g.ctx.globalAlpha = 1;
          g.ctx.strokeStyle = palette.bad;
          shape(g.ctx, "ring", px, py, 5);
          g.ctx.restore();
        }
        if (small) g.ctx.fillRect(px - 1.2, py - 1.2, 2.4, 2.4); else shape(g.ctx, FATE_SHAPE[fate], px, py, 3);
        count++;
      }
    });
    return count;
  },
  pick(px, py, box) {
    const y = latencyScale(box), x = linear(view.from, view.to, box.left, box.right);
    if (!y) return null;
    let best = -1, near = 64;
    for (let i = lower(R.t, x.invert(px - 8)); i < R.t.length && R.t[i] <= x.invert(px + 8); i++) {
      if (!shown(i)) continue;
      const away = (x(R.t[i]) - px) ** 2 + (y(latencyOf(i)) - py) ** 2;
      if (away < near || (away === near && R.fate[i])) { near = away; best = i; }
    }
    return best < 0 ? null : sayRequest(best);
  },
});

function sayRequest(i) {
  const more = R.more[i] || {}, fate = FATES[R.fate[i]];
  const parts = [`${R.id[i]}: ${fate}${more.how ? ` (${more.how})` : ""}, ${R.models[R.model[i]]} through ${R.entries[R.entry[i]]}`];
  parts.push(`due at ${clock(R.t[i])}, ${seconds(R.duration[i])} to its end${R.ttft[i] === null ? "" : `, first token after ${seconds(R.ttft[i])}`}${R.streamed[i] ? "" : ", not streamed"}`);
  const altered = data.altered[R.id[i]];
  if (altered) parts.push(`answer altered: ${altered.how} from token ${altered.token} on, ${altered.detail}`);
  if (more.own) parts.push(more.own === "node" ? "its own node was faulted" : "its own node was rejoining");
  if (more.fault !== undefined && more.fault !== null) parts.push(`by fault ${more.fault}`);
  if (more.unwedging !== undefined && more.unwedging !== null) parts.push(`by the rig's own unwedging after fault ${more.unwedging}`);
  return parts.join("\n");
}

// Bins joined so that each is at least `least` pixels wide: [{from, to, first, last}], positions into the columns.
function groups(g, least) {
  const width = data.bins.width, count = data.bins.started.length, found = [];
  const by = Math.max(1, Math.ceil((least * (g.to - g.from)) / (g.box.right - g.box.left) / width));
  const first = Math.max(Math.floor(Math.floor(g.from / width) / by) * by, 0);
  for (let i = first; i < count && i * width <= g.to; i += by) found.push({ from: i * width, to: (i + by) * width, first: i, last: Math.min(i + by, count) });
  return found;
}
function sum(name, group) { let total = 0; for (let i = group.first; i < group.last; i++) total += data.bins[name][i]; return total; }
const rate = (name, group) => sum(name, group) / (group.to - group.from);

chart("outcomes", {
  title: "Requests by outcome", note: "a second, at their end; unfinished ones at their start", height: 150,
  paint(g) {
    const bars = groups(g, 4);
    const y = linear(0, Math.max(...bars.map((b) => FATES.reduce((n, f) => n + rate(f, b), 0)), 0.1) * 1.05, g.box.bottom, g.box.top);
    valueAxis(g, y, WORDS.count);
    clip(g);
    let count = 0;
    for (const bar of bars) {
      let level = 0;
      for (const fate of FATES) {
        const amount = rate(fate, bar);
        if (!amount) continue;
        const top = y(level + amount), least = fate === "completed" ? 0 : 2;  // what failed is never too small to be seen
        g.ctx.fillStyle = palette[fate];
        g.ctx.fillRect(g.x(bar.from), Math.min(top, y(level) - least), Math.max(g.x(bar.to) - g.x(bar.from) - 0.5, 1), Math.max(y(level) - top, least));
        level += amount;
        count++;
      }
    }
    return count;
  },
  pick(px, _py, box) {
    const g = { box, from: view.from, to: view.to }, t = linear(view.from, view.to, box.left, box.right).invert(px);
    const bar = groups(g, 4).find((b) => b.from <= t && t < b.to);
    return bar ? `${seconds(bar.to - bar.from)} from ${clock(bar.from)}: ` + FATES.filter((f) => sum(f, bar)).map((f) => `${Math.round(sum(f, bar))} ${f}`).join(", ") : null;
  },
});

function lines(g, series) {
  const bins = groups(g, 3), high = Math.max(...series.flatMap((s) => bins.map((b) => rate(s.name, b))), 0.1);
  const y = linear(0, high * 1.05, g.box.bottom, g.box.top);
  valueAxis(g, y, WORDS.count);
  clip(g);
  let count = 0;
  for (const one of series) {
    g.ctx.strokeStyle = palette[one.colour];
    g.ctx.lineWidth = 1.5;
    g.ctx.setLineDash(one.dash || []);
    g.ctx.beginPath();
    for (const bin of bins) { g.ctx.lineTo(g.x((bin.from + bin.to) / 2), y(rate(one.name, bin))); count++; }
    g.ctx.stroke();
  }
  g.ctx.setLineDash([]);
  return count;
}
const rates = (...series) => (px, _py, box) => {
  const t = linear(view.from, view.to, box.left, box.right).invert(px);
  const bin = groups({ box, from: view.from, to: view.to }, 3).find((b) => b.from <= t && t < b.to);
  return bin ? series.map(([name, word]) => `${compact(rate(name, bin))} ${word}`).join(", ") : null;
};
chart("throughput", { title: "Tokens per second", height: 120, paint: (g) => lines(g, [{ name: "tokens", colour: "completed" }]), pick: rates(["tokens", "tokens/s"]) });
chart("requests", {
  title: "Requests per second", note: "completed solid, started dashed", height: 110,
  paint: (g) => lines(g, [{ name: "started", colour: "muted", dash: [4, 3] }, { name: "completed", colour: "completed" }]),
  pick: rates(["started", "requests/s started"], ["completed", "completed"]),
});
