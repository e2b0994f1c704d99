// Memory and processor of the nodes as far as the journal has them, and the rig's own.
const GIB = 2 ** 30;
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3], [10, 4]];
const nodeColour = (n) => KIND_COLOURS[(n + 2) % KIND_COLOURS.length];

function stepLine(g, samples, y) {
  g.ctx.beginPath();
  let before = null, count = 0;
  for (const [t, value] of samples) {
    if (before !== null) g.ctx.lineTo(g.x(t), y(before));
    g.ctx.lineTo(g.x(t), y(value));
    before = value;
    if (t >= g.from && t <= g.to) count++;
  }
  if (before !== null) g.ctx.lineTo(g.x(Math.min(whole[1], g.to)), y(before));
  g.ctx.stroke();
  return count;
}

const withMemory = data.nodes.filter((n) => n.memory.length || n.measured.length);
const without = data.nodes.filter((n) => !n.memory.length && !n.measured.length).map((n) => n.name);

chart("memory", {
  title: "Memory available per node", height: 150,
  note: `line: as the node told the target, dot: read on the node around a fault${without.length ? `; unknown for ${without.join(", ")}` : ""}`,
  paint(g) {
    if (!withMemory.length) return nothing(g, "unknown: the journal has no memory figures of any node");
    const all = withMemory.flatMap((n) => [...n.memory, ...n.measured].map(([, v]) => v));
    const gib = linear(0, (Math.max(...all) / GIB) * 1.1, g.box.bottom, g.box.top), y = (v) => gib(v / GIB);
    valueAxis(g, gib, (v) => `${WORDS.count(v)} GiB`);
    let count = 0, free = g.box.left + 8;
    withMemory.forEach((node) => {
      const n = data.nodes.indexOf(node);
      g.ctx.fillStyle = g.ctx.strokeStyle = nodeColour(n);
      g.ctx.lineWidth = 1.6;
      g.ctx.save();
      clip(g);
      g.ctx.setLineDash(DASHES[n % DASHES.length]);
      count += stepLine(g, node.memory, y);
      g.ctx.setLineDash([]);
      for (const [t, v] of node.measured) if (t >= g.from && t <= g.to) { shape(g.ctx, "dot", g.x(t), y(v), 2.5); count++; }
      g.ctx.restore();
      g.ctx.fillText(node.name, free, g.box.bottom - 6);
      free += g.ctx.measureText(node.name).width + 14;
    });
    return count;
  },
  pick(px, _py, box) {
    const t = linear(view.from, view.to, box.left, box.right).invert(px);
    const said = withMemory.map((node) => {
      const list = node.memory.length ? node.memory : node.measured, past = list.filter(([at]) => at <= t);
      return past.length ? `${node.name}: ${WORDS.bytes(past[past.length - 1][1])}` : `${node.name}: unknown`;
    });
    return said.join(", ") || null;
  },
});

chart("cpu", {
  title: "Processor", height: 120,
  note: "of the nodes: unknown, no journal has it; the rig's own process in percent of one core",
  paint(g) {
    const own = data.controller.cpu_percent;
    if (!own.length) return nothing(g, "unknown: the journal has no figures of the rig's own process either");
    const y = linear(0, Math.max(...own.map(([, v]) => v), 10) * 1.1, g.box.bottom, g.box.top);
    valueAxis(g, y, (v) => `${WORDS.count(v)} %`, 3);
    clip(g);
    g.ctx.strokeStyle = palette.completed;
    return stepLine(g, own, y);
  },
  pick(px, _py, box) {
    const t = linear(view.from, view.to, box.left, box.right).invert(px);
    const last = (list) => { const past = list.filter(([at]) => at <= t); return past.length ? past[past.length - 1][1] : null; };
    const cpu = last(data.controller.cpu_percent), lag = last(data.controller.lag_s);
    return cpu === null ? null : `the rig: ${cpu} % of a core, event loop late by at most ${seconds(lag)}`;
  },
});
