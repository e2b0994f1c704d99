// Legend, controls, themes and printing; and what tests ask.
function legend() {
  const host = document.getElementById("legend");
  host.textContent = "";
  const key = (text, paint) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 32, height: 28 });
    const ctx = canvas.getContext("2d");
    ctx.scale(2, 2);
    paint(ctx);
    const item = Object.assign(document.createElement("span"), { className: "key" });
    item.append(canvas, text);
    host.append(item);
  };
  const counts = FATES.map((_, f) => R.fate.filter((found) => found === f).length);
  FATES.forEach((fate, f) => counts[f] && key(`${fate} ${counts[f]}`, (ctx) => {
    ctx.fillStyle = ctx.strokeStyle = palette[fate]; ctx.lineWidth = 1.6; shape(ctx, FATE_SHAPE[fate], 8, 7, 4);
  }));
  kinds.forEach((kind) => key(`${kindLetter(kind)} ${kind} ${data.faults.filter((f) => f.kind === kind).length}`, (ctx) => {
    ctx.globalAlpha = 0.45; ctx.fillStyle = kindColour(kind); ctx.fillRect(0, 0, 16, 14);
  }));
}

const models = document.getElementById("model");
models.append(new Option("all", ""), ...R.models.map((name, m) => new Option(name, String(m))));
models.addEventListener("change", () => { chosen.model = models.value === "" ? null : Number(models.value); drawAll(); });
document.getElementById("measure").addEventListener("change", (event) => { chosen.measure = event.target.value; drawAll(); });
for (const [id, act] of [["reset", resetZoom], ["closer", () => scaleZoom(0.5)], ["wider", () => scaleZoom(2)], ["earlier", () => nudge(-0.5)], ["later", () => nudge(0.5)]])
  document.getElementById(id).addEventListener("click", act);

function redraw() { drawAll(); legend(); }
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
window.addEventListener("beforeprint", () => { document.documentElement.dataset.theme = "light"; redraw(); });
window.addEventListener("afterprint", () => { delete document.documentElement.dataset.theme; redraw(); });
let waiting = 0;
window.addEventListener("resize", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(drawAll); });

window.rigReport = {
  counts: {
    requests: R.t.length,
    fates: Object.fromEntries(FATES.map((fate, f) => [fate, R.fate.filter((found) => found === f).length])),
    faults: data.faults.length, recoveries: affected.length, notRecovered: affected.filter(endless).length,
    nodes: data.nodes.length, instances: data.instances.length,
  },
  drawn, view, zoom, reset: resetZoom, seconds,
};
// Links to times zoom; links into a folded part open it.
function follow() {
  const asked = /^#t=([\d.]+),([\d.]+)$/.exec(location.hash);
  if (asked) { zoom(Number(asked[1]), Number(asked[2])); return true; }
  const target = location.hash && document.getElementById(location.hash.slice(1));
  const inside = target && (target.closest("details") || target.querySelector(":scope > details"));
  if (inside) { inside.open = true; target.scrollIntoView(); }
  return false;
}
const reveal = () => { if (follow()) document.getElementById("plots").scrollIntoView(); };
window.addEventListener("hashchange", reveal);
redraw();
reveal();
