// Time to serve: every fault and model, over time and by kind. What never served stands above the line of infinity.
const affected = data.recoveries.filter((r) => r.class !== "unaffected");
const CLASS_SHAPE = { survived: "dot", replaced: "square", unknown: "diamond", censored: "ring", "not recovered": "triangle" };
const endless = (r) => r.class === "not recovered" || (r.serve === null && r.class !== "censored");
const serveOf = (r) => (r.serve === null ? r.at_least : r.serve);

function serveScale(box) {
  const values = affected.filter((r) => !endless(r)).map((r) => Math.max(serveOf(r), 0.001));
  const top = box.top + 18;
  return logarithmic(Math.min(...values, 0.1) * 0.8, Math.max(...values, 1) * 1.25, box.bottom, top);
}

function infinityLine(g) {
  g.ctx.strokeStyle = palette.line;
  g.ctx.setLineDash([3, 3]);
  g.ctx.beginPath(); g.ctx.moveTo(g.box.left, g.box.top + 15.5); g.ctx.lineTo(g.box.right, g.box.top + 15.5); g.ctx.stroke();
  g.ctx.setLineDash([]);
  g.ctx.fillStyle = palette.muted;
  g.ctx.textAlign = "right"; g.ctx.fillText("never", g.box.left - 6, g.box.top + 11); g.ctx.textAlign = "left";
}

function mark(g, r, px, y) {
  g.ctx.fillStyle = g.ctx.strokeStyle = endless(r) ? palette.lost : kindColour(r.kind);
  g.ctx.lineWidth = 1.8;
  shape(g.ctx, endless(r) ? "triangle" : CLASS_SHAPE[r.class] || "dot", px, endless(r) ? g.box.top + 8 : y(serveOf(r)), 4.5);
}

function sayRecovery(r) {
  const served = r.class === "censored" && r.serve === null ? `cut short by another fault after ${seconds(r.at_least)}` : r.serve === null ? `not served for ${seconds(r.at_least)}` : `served ${seconds(r.serve)} after the heal`;
  return `fault ${r.fault} (${r.kind}), ${r.model}: ${r.class}\n${served}, sustained after ${r.sustained === null ? "no time seen" : seconds(r.sustained)}\noutage ${seconds(r.outage)}, silence ${seconds(r.silence)}, resolution ${seconds(r.resolution)}`;
}

const nearest = (places, px, py) => {
  const found = places.map((p) => [(p.x - px) ** 2 + (p.y - py) ** 2, p.r]).filter(([away]) => away < 100).sort((a, b) => a[0] - b[0]);
  return found.length ? found.slice(0, 3).map(([, r]) => sayRecovery(r)).join("\n\n") : null;
};

chart("serve", {
  title: "Time to serve after each fault", height: 170,
  note: "from the heal, at the strike; circle: survived, square: replaced, ring: cut short by another fault, triangle above the line: not recovered",
  paint(g) {
    if (!affected.length) return nothing(g, "no model was affected by a fault");
    const y = serveScale(g.box);
    valueAxis(g, y, WORDS.seconds);
    infinityLine(g);
    clip(g);
    const inside = affected.filter((r) => r.strike >= g.from && r.strike <= g.to);
    inside.forEach((r) => mark(g, r, g.x(r.strike), y));
    return inside.length;
  },
  pick(px, py, box) {
    if (!affected.length) return null;
    const y = serveScale(box), x = linear(view.from, view.to, box.left, box.right);
    return nearest(affected.map((r) => ({ r, x: x(r.strike), y: endless(r) ? box.top + 8 : y(serveOf(r)) })), px, py);
  },
});

function columns(box) {
  const wide = (box.right - box.left) / Math.max(kinds.length, 1);
  return affected.map((r, i) => ({ r, x: box.left + wide * (kinds.indexOf(r.kind) + 0.5) + (((i * 7) % 13) - 6) * Math.min(wide / 30, 6) }));
}

function medianOf(kind) {
  const values = affected.filter((r) => r.kind === kind).map((r) => (r.serve === null ? Infinity : r.serve)).sort((a, b) => a - b);
  if (!values.length) return null;
  return (values[(values.length - 1) >> 1] + values[values.length >> 1]) / 2;
}

chart("kinds", {
  title: "Time to serve by kind of fault", note: "whole run; the bar is the median, what never ended counted as infinite", height: 200, time: false,
  paint(g) {
    if (!affected.length) return nothing(g, "no model was affected by a fault");
    const y = serveScale(g.box), wide = (g.box.right - g.box.left) / kinds.length;
    valueAxis(g, y, WORDS.seconds);
    infinityLine(g);
    columns(g.box).forEach((p) => mark(g, p.r, p.x, y));
    kinds.forEach((kind, k) => {
      const middle = g.box.left + wide * (k + 0.5), median = medianOf(kind);
      g.ctx.fillStyle = palette.fg;
      g.ctx.textAlign = "center";
      g.ctx.fillText(`${kindLetter(kind)}  ${kind}`, middle, g.box.bottom + 14);
      if (median !== null) g.ctx.fillRect(middle - wide * 0.3, Number.isFinite(median) ? y(median) - 1 : g.box.top + 7, wide * 0.6, 2);
      g.ctx.textAlign = "left";
    });
    return affected.length;
  },
  pick(px, py, box) {
    if (!affected.length) return null;
    const y = serveScale(box);
    return nearest(columns(box).map((p) => ({ ...p, y: endless(p.r) ? box.top + 8 : y(serveOf(p.r)) })), px, py);
  },
});
