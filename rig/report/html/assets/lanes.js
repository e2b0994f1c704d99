// One lane a node, and one an instance.
const LANE = 26, ROW = 13;
const endOf = (to) => (to === null ? whole[1] : to);

function bar(g, from, to, top, height, colour, hatched) {
  if (to < g.from || from > g.to) return 0;
  const left = Math.max(g.x(from), g.box.left), right = Math.min(Math.max(g.x(to), left + 1), g.box.right);
  g.ctx.fillStyle = colour;
  if (!hatched) { g.ctx.fillRect(left, top, right - left, height); return 1; }
  g.ctx.save();
  g.ctx.globalAlpha = 0.25; g.ctx.fillRect(left, top, right - left, height); g.ctx.globalAlpha = 1;
  g.ctx.beginPath(); g.ctx.rect(left, top, right - left, height); g.ctx.clip();
  g.ctx.strokeStyle = colour; g.ctx.lineWidth = 1.5; g.ctx.beginPath();
  for (let at = left - height - (left % 5); at < right; at += 5) { g.ctx.moveTo(at, top + height); g.ctx.lineTo(at + height, top); }
  g.ctx.stroke();
  g.ctx.restore();
  return 1;
}

function laneName(g, text, middle) {
  g.ctx.fillStyle = palette.fg;
  g.ctx.textAlign = "right";
  let name = text;
  while (name.length > 3 && g.ctx.measureText(name).width > LEFT - 12) name = `…${name.slice(2)}`;
  g.ctx.fillText(name, g.box.left - 6, middle + 4);
  g.ctx.textAlign = "left";
}

const hits = (fault, node) => fault.from !== null && fault.nodes.includes(node);

chart("nodes", {
  title: "Nodes", faults: false, height: () => 14 + BOTTOM + Math.max(data.nodes.length, 1) * (LANE + 6),
  note: "green: its API answers, hatched red: silent; amber: restarted and not caught up; fault in force in its colour; dark line: claims to be master",
  paint(g) {
    if (!data.nodes.length) return nothing(g, "no node was observed");
    let count = 0;
    data.nodes.forEach((node, n) => {
      const top = g.box.top + n * (LANE + 6);
      laneName(g, node.name, top + LANE / 2);
      for (const [from, to, state] of node.reach) count += bar(g, from, endOf(to), top, LANE - 6, state === "answers" ? palette.good : palette.bad, state !== "answers");
      for (const [from, to] of node.rejoining) count += bar(g, from, to, top + 3, LANE - 12, palette.slow);
      for (const fault of data.faults) if (hits(fault, node.name)) count += bar(g, fault.from, fault.to === null ? whole[1] : fault.to, top, LANE - 6, kindColour(fault.kind));
      if (!node.reach.length) { g.ctx.fillStyle = palette.muted; g.ctx.fillText("unknown whether it answered: the journal has no poll of it", g.box.left + 8, top + 14); }
      for (const [from, to] of node.master) count += bar(g, from, endOf(to), top + LANE - 5, 4, palette.chief);
    });
    return count;
  },
  pick(px, py, box) {
    const node = data.nodes[Math.floor((py - box.top) / (LANE + 6))];
    if (!node || px < box.left || px > box.right) return null;
    const t = linear(view.from, view.to, box.left, box.right).invert(px), at = ([from, to]) => from <= t && t < endOf(to);
    const reach = node.reach.find(at);
    const parts = [`${node.name}: ${!reach ? "not known to answer" : reach[2] === "answers" ? "answers" : "does not answer"}`];
    if (node.rejoining.some(at)) parts.push("rejoining");
    if (node.master.some(at)) parts.push("claims to be master");
    return parts.join(", ");
  },
});

// Instances of a model share rows where they do not overlap.
function packed() {
  const rows = [];
  const models = [...new Set(data.instances.map((i) => i.model))].sort();
  for (const model of models) {
    const mine = [];
    for (const instance of data.instances) {
      if (instance.model !== model || !instance.spans.length) continue;
      const from = instance.spans[0][0], to = endOf(instance.spans[instance.spans.length - 1][1]);
      let row = mine.find((r) => r.end <= from);
      if (!row) { row = { model, first: mine.length === 0, end: 0, items: [] }; mine.push(row); }
      row.end = to;
      row.items.push(instance);
    }
    rows.push(...mine);
  }
  return rows;
}
const rows = packed();
const STATE = { ready: ["good", false], starting: ["slow", false], failed: ["bad", false], listed: ["pale", false], elsewhere: ["pale", true] };

chart("instances", {
  title: "Instances", height: () => 14 + BOTTOM + Math.max(rows.length, 2) * (ROW + 3),
  note: `as the master's view has them; green: ready, amber: starting, red: failed, grey: state unknown, hatched: listed by another node only${data.instances_left_out ? `; ${data.instances_left_out} more are not shown` : ""}`,
  label: `Lifetimes and states of ${data.instances.length} instances`,
  paint(g) {
    if (!rows.length) return nothing(g, "unknown: no view of instances is in the journal");
    let count = 0;
    rows.forEach((row, n) => {
      const top = g.box.top + n * (ROW + 3);
      if (row.first) laneName(g, row.model, top + ROW / 2);
      for (const instance of row.items) {
        for (const [from, to, state] of instance.spans) count += bar(g, from, endOf(to), top, ROW, palette[STATE[state][0]], STATE[state][1]);
        const from = instance.spans[0][0];
        if (from >= g.from && from <= g.to) { g.ctx.fillStyle = palette.fg; g.ctx.fillRect(g.x(from), top, 1.5, ROW); }
      }
    });
    return count;
  },
  pick(px, py, box) {
    const row = rows[Math.floor((py - box.top) / (ROW + 3))];
    if (!row || px < box.left) return null;
    const t = linear(view.from, view.to, box.left, box.right).invert(px);
    for (const instance of row.items)
      for (const [from, to, state] of instance.spans) if (from <= t && t < endOf(to)) return `${instance.model}: instance ${instance.id}\n${state} from ${clock(from)} ${to === null ? "on" : `to ${clock(to)}`}`;
    return null;
  },
});
