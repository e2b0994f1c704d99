// What every chart has: a canvas, the shared time axis, faults shaded by kind, zoom by dragging, details on hover.
const data = JSON.parse(document.getElementById("data").textContent);
const whole = [0, Math.max(data.end_t || 0, 1)];
const view = { from: whole[0], to: whole[1] };
const charts = [];
const drawn = {};
const RIGHT = 16, BOTTOM = 36;
let LEFT = 110;
const KIND_COLOURS = ["#cc6677", "#aa4499", "#4499cc", "#8f8f1f", "#44aa99", "#7788dd", "#c08040", "#77aa44", "#999999",
  "#b05fd0", "#d0609a", "#3f8f8f", "#a06a3a", "#6a7fb0"];
const met = new Set(data.faults.map((f) => f.kind));
// The same colour in every report; letters tell apart what shares one.
const palettes = [...data.kinds, ...[...met].filter((kind) => !data.kinds.includes(kind)).sort()];
const kinds = palettes.filter((kind) => met.has(kind));
const kindColour = (kind) => KIND_COLOURS[palettes.indexOf(kind) % KIND_COLOURS.length];
const kindLetter = (kind) => kind.split("-").map((word) => word[0].toUpperCase()).join("");
let palette = {};

function readPalette() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["bg", "panel", "fg", "muted", "grid", "line", "completed", "error", "lost", "void", "unfinished",
    "good", "slow", "bad", "pale", "chief"]) palette[name] = style.getPropertyValue(`--${name}`).trim();
}

// paint(g) draws into g = {ctx, x, box, from, to} and returns how many marks it drew; pick(px, py) says what is there.
function chart(name, { title, note = "", height = 180, paint, pick, time = true, faults = true, label = title }) {
  const host = document.getElementById(`chart-${name}`);
  host.innerHTML = "";
  const caption = document.createElement("figcaption");
  caption.textContent = title + " ";
  if (note) caption.append(Object.assign(document.createElement("small"), { textContent: note }));
  const canvas = Object.assign(document.createElement("canvas"), { className: "plot", tabIndex: 0 });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", label);
  const cross = Object.assign(document.createElement("div"), { className: "cross", hidden: true });
  host.append(caption, canvas, cross);
  const self = { name, host, canvas, cross, height, paint, pick, time, faults, box: null };
  charts.push(self);
  listen(self);
  return self;
}

function draw(self) {
  const width = self.host.clientWidth, ratio = window.devicePixelRatio || 1;
  const height = typeof self.height === "function" ? self.height() : self.height;
  self.canvas.style.height = `${height}px`;
  self.canvas.width = Math.round(width * ratio);
  self.canvas.height = Math.round(height * ratio);
  const ctx = self.canvas.getContext("2d");
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.font = "11px system-ui, sans-serif";
  const box = { left: LEFT, top: 14, right: width - RIGHT, bottom: height - BOTTOM };
  self.box = box;
  const x = linear(view.from, view.to, box.left, box.right);
  const g = { ctx, x, box, from: view.from, to: view.to };
  if (self.time && self.faults) shadeFaults(g);
  ctx.save();
  drawn[self.name] = self.paint(g) || 0;
  ctx.restore();
  if (self.time) timeAxis(g);
}

function drawAll() {
  LEFT = window.innerWidth < 700 ? 68 : 110;
  readPalette();
  charts.forEach(draw);
  const said = document.getElementById("range");
  if (said) said.textContent = `${clock(view.from)} to ${clock(view.to)}`;
}

function clip(g) { g.ctx.beginPath(); g.ctx.rect(g.box.left, g.box.top, g.box.right - g.box.left, g.box.bottom - g.box.top); g.ctx.clip(); }

// Each fault that struck, from strike to heal; its letters on top where there is room.
function shadeFaults(g) {
  const { ctx, x, box } = g;
  let free = -Infinity;
  for (const fault of data.faults) {
    if (fault.from === null) continue;
    const to = fault.to === null ? whole[1] : fault.to;
    if (to < g.from || fault.from > g.to) continue;
    const left = Math.max(x(fault.from), box.left), right = Math.min(Math.max(x(to), left + 1.5), box.right);
    ctx.globalAlpha = fault.effective ? 0.3 : 0.12;
    ctx.fillStyle = kindColour(fault.kind);
    ctx.fillRect(left, box.top, right - left, box.bottom - box.top);
    ctx.globalAlpha = 1;
    const letters = kindLetter(fault.kind), wide = ctx.measureText(letters).width;
    if (left > free && left + wide < box.right) {
      ctx.fillText(letters, left, box.top - 3);
      free = left + wide + 3;
    }
  }
}

function timeAxis(g) {
  const { ctx, x, box } = g;
  ctx.strokeStyle = palette.line;
  ctx.beginPath(); ctx.moveTo(box.left, box.bottom + 0.5); ctx.lineTo(box.right, box.bottom + 0.5); ctx.stroke();
  ctx.fillStyle = palette.muted;
  ctx.textAlign = "center";
  const fine = g.to - g.from < 10;
  for (const t of x.ticks(Math.max(2, (box.right - box.left) / 90), true)) {
    const text = fine ? t.toFixed(2) : clock(t), half = ctx.measureText(text).width / 2;
    ctx.fillText(text, Math.min(x(t), box.right + RIGHT - half), box.bottom + 14);
    ctx.fillText(wall(t), Math.min(x(t), box.right + RIGHT - ctx.measureText(wall(t)).width / 2), box.bottom + 28);
  }
  ctx.textAlign = "left";
}

function valueAxis(g, y, words, want = 4) {
  const { ctx, box } = g;
  ctx.textAlign = "right";
  ctx.fillStyle = palette.muted;
  ctx.strokeStyle = palette.grid;
  for (const v of y.ticks(want)) {
    const at = Math.round(y(v)) + 0.5;
    ctx.beginPath(); ctx.moveTo(box.left, at); ctx.lineTo(box.right, at); ctx.stroke();
    ctx.fillText(words(v), box.left - 6, at + 4);
  }
  ctx.textAlign = "left";
}

function nothing(g, text) {
  g.ctx.fillStyle = palette.muted;
  g.ctx.fillText(text, g.box.left + 8, (g.box.top + g.box.bottom) / 2);
  return 0;
}

// Shapes beside colours, for those who cannot tell the colours apart.
function shape(ctx, kind, x, y, size) {
  ctx.beginPath();
  if (kind === "dot") ctx.arc(x, y, size, 0, 7);
  else if (kind === "square") ctx.rect(x - size, y - size, 2 * size, 2 * size);
  else if (kind === "diamond") { ctx.moveTo(x, y - size * 1.4); ctx.lineTo(x + size * 1.4, y); ctx.lineTo(x, y + size * 1.4); ctx.lineTo(x - size * 1.4, y); ctx.closePath(); }
  else if (kind === "triangle") { ctx.moveTo(x, y - size * 1.3); ctx.lineTo(x + size * 1.2, y + size); ctx.lineTo(x - size * 1.2, y + size); ctx.closePath(); }
  else if (kind === "cross") { ctx.moveTo(x - size, y - size); ctx.lineTo(x + size, y + size); ctx.moveTo(x + size, y - size); ctx.lineTo(x - size, y + size); }
  else if (kind === "ring") ctx.arc(x, y, size, 0, 7);
  if (kind === "cross" || kind === "ring") ctx.stroke(); else ctx.fill();
}

function zoom(from, to) {
  const least = Math.max((whole[1] - whole[0]) / 1e5, 0.01);
  let low = Math.max(Math.min(from, to), whole[0]), high = Math.min(Math.max(from, to), whole[1]);
  if (high - low < least) { const mid = (low + high) / 2; low = Math.max(mid - least / 2, whole[0]); high = low + least; }
  view.from = low; view.to = high;
  const hash = low === whole[0] && high === whole[1] ? " " : `#t=${low.toFixed(2)},${high.toFixed(2)}`;
  try { history.replaceState(null, "", hash === " " ? location.pathname : hash); } catch { /* some viewers forbid it */ }
  drawAll();
}
const resetZoom = () => zoom(...whole);
const nudge = (share) => { const by = (view.to - view.from) * share, room = Math.max(Math.min(by, whole[1] - view.to), whole[0] - view.from); zoom(view.from + room, view.to + room); };
const scaleZoom = (factor) => { const mid = (view.from + view.to) / 2, half = ((view.to - view.from) / 2) * factor; zoom(mid - half, mid + half); };

function listen(self) {
  const at = (event) => { const r = self.canvas.getBoundingClientRect(); return [event.clientX - r.left, event.clientY - r.top]; };
  const timeAt = (px) => linear(view.from, view.to, self.box.left, self.box.right).invert(Math.min(Math.max(px, self.box.left), self.box.right));
  let start = null, band = null;
  self.canvas.addEventListener("pointerdown", (event) => {
    if (!self.time || event.button !== 0) return;
    start = at(event)[0];
    self.canvas.setPointerCapture(event.pointerId);
    band = Object.assign(document.createElement("div"), { className: "select" });
    band.style.top = `${self.canvas.offsetTop + self.box.top}px`;
    band.style.height = `${self.box.bottom - self.box.top}px`;
    self.host.append(band);
  });
  self.canvas.addEventListener("pointermove", (event) => {
    const [px, py] = at(event);
    if (band) { band.style.left = `${Math.min(start, px)}px`; band.style.width = `${Math.abs(px - start)}px`; }
    if (self.time) crossAt(px);
    hover(self, px, py, event);
  });
  const end = (event) => {
    if (!band) return;
    band.remove(); band = null;
    const px = at(event)[0];
    if (event.type === "pointerup" && Math.abs(px - start) > 4) zoom(timeAt(start), timeAt(px));
  };
  self.canvas.addEventListener("pointerup", end);
  self.canvas.addEventListener("pointercancel", end);
  self.canvas.addEventListener("pointerleave", () => { crossAt(null); hideHover(); });
  self.canvas.addEventListener("dblclick", () => self.time && resetZoom());
  self.canvas.addEventListener("keydown", (event) => {
    const acts = { ArrowLeft: () => nudge(-0.25), ArrowRight: () => nudge(0.25), "+": () => scaleZoom(0.5), "-": () => scaleZoom(2), Escape: resetZoom };
    if (acts[event.key]) { acts[event.key](); event.preventDefault(); }
  });
}

function crossAt(px) {
  for (const other of charts) {
    if (!other.time || !other.box) continue;
    other.cross.hidden = px === null || px < other.box.left || px > other.box.right;
    other.cross.style.left = `${px}px`;
    other.cross.style.top = `${other.canvas.offsetTop + other.box.top}px`;
    other.cross.style.height = `${other.box.bottom - other.box.top}px`;
  }
}

function hover(self, px, py, event) {
  const said = [], found = self.pick && self.box ? self.pick(px, py, self.box) : null;
  if (found) said.push(found);
  if (self.time && self.box && px >= self.box.left && px <= self.box.right) {
    const x = linear(view.from, view.to, self.box.left, self.box.right), t = x.invert(px);
    for (const fault of data.faults) {
      const to = fault.to === null ? fault.from : fault.to;
      if (fault.from !== null && x(fault.from) - 3 <= px && px <= Math.max(x(to), x(fault.from)) + 3)
        said.push(`fault ${fault.fault}: ${fault.kind}, ${fault.aim}; struck at ${clock(fault.from)}, held ${fault.to === null ? "without a heal" : seconds(to - fault.from)}${fault.effective ? "" : ", without effect"}`);
    }
    said.push(`at ${clock(t)} (${t.toFixed(1)} s, ${wall(t)} on the wall clock)`);
  }
  const box = document.getElementById("hover");
  if (!said.length) return hideHover();
  box.textContent = said.join("\n");
  box.hidden = false;
  box.style.left = `${Math.min(event.clientX + 14, window.innerWidth - box.offsetWidth - 8)}px`;
  box.style.top = `${Math.min(event.clientY + 14, window.innerHeight - box.offsetHeight - 8)}px`;
}
function hideHover() { document.getElementById("hover").hidden = true; }
