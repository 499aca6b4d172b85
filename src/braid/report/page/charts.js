// Draws the charts of a page: every <figure class="chart" data-kind="…"> holds its data as JSON, and a function of
// that name below draws it. Times are in seconds, memory in bytes, errors in shares.
(() => {
"use strict";
const kMargin = {left: 58, right: 16, top: 14, bottom: 46};
const kColours = ["#3572b0", "#e08e3c", "#3f8a5b", "#c2528b", "#8c6bb1", "#c9a227", "#4aa3a1", "#a0522d", "#d1605e",
                  "#7f8c99"];
// Markers of 5 px around their middle.
const kShapes = ["M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", "M-3.6 -3.6h7.2v7.2h-7.2z", "M0 -4.6l4.4 7.8h-8.8z",
                 "M0 -5l4.2 5l-4.2 5l-4.2 -5z", "M-4 -1.4h2.6v-2.6h2.8v2.6h2.6v2.8h-2.6v2.6h-2.8v-2.6h-2.6z"];
const colour = (group) => kColours[group % kColours.length];
const shape = (group) => kShapes[Math.floor(group / kColours.length) % kShapes.length];

const digits = (value, count = 4) => String(Number(value.toPrecision(count)));
// As the terminal writes figures: zeros at the end count.
const fourDigits = (value) => (value === 0 ? "0" : Math.abs(value) >= 999.95 ? value.toFixed(0) : value.toPrecision(4));
const GiB = (bytes) => `${fourDigits(bytes / 2 ** 30)} GiB`;

// The unit that all marks of a time axis share.
function timeUnit(span) {
  const units = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  const [scale, name] = units.find(([least]) => span >= 2 * least) || units[3];
  return {scale, name};
}
function duration(seconds) {
  const unit = timeUnit(seconds * 2);
  return `${fourDigits(seconds / unit.scale)} ${unit.name}`;
}
// The multiple of a unit that all marks of an axis count in: of 3e18 FLOP/s EFLOP/s, of 2e6 USD million USD.
function multiple(most, unit) {
  const names = /^(W|FLOP)/.test(unit) ? ["", "k", "M", "G", "T", "P", "E"]
                                       : ["", "thousand ", "million ", "billion ", "trillion "];
  const step = Math.max(0, Math.min(names.length - 1, Math.floor(Math.log10(Math.max(most, 1)) / 3)));
  return {scale: 1000 ** step, name: names[step] + unit};
}

function add(parent, tag, attributes = {}, text) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

// A box over the chart that says what is pointed at.
function tipIn(plot) {
  const tip = add(plot, "div", {class: "tip", role: "status", hidden: ""});
  return {
    show(text, x, y) {
      tip.textContent = text;
      tip.hidden = false;
      const width = plot.clientWidth;
      tip.style.left = `${Math.max(0, Math.min(x + 14, width - tip.offsetWidth))}px`;
      tip.style.top = `${y + 16}px`;
    },
    hide() { tip.hidden = true; },
  };
}

// Draws now, and again when the width or the scheme changes.
function keepDrawn(plot, draw) {
  let width = 0;
  const redraw = () => { width = plot.clientWidth; if (width > 0) draw(width); };
  new ResizeObserver(() => { if (plot.clientWidth !== width) redraw(); }).observe(plot);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  redraw();
  return redraw;
}

// An SVG with a grid, both axes and their names.
function framed(svg, width, height, x, y, names, ticks = {}) {
  svg.selectAll("*").remove();
  svg.attr("width", width).attr("height", height).attr("viewBox", `0 0 ${width} ${height}`);
  const bottom = height - kMargin.bottom;
  const horizontal = (axis) => {
    const count = Math.max(2, Math.floor(width / 110));
    return ticks.x ? axis.tickValues(ticks.x(count)).tickFormat(ticks.xText || ((value) => digits(value))) : axis.ticks(count);
  };
  const vertical = (axis) => ticks.y ? axis.tickValues(ticks.y(6)).tickFormat(ticks.yText || ((value) => digits(value))) : axis.ticks(6);
  if (x.invert) {
    svg.append("g").attr("class", "grid").attr("transform", `translate(0,${bottom})`)
        .call(horizontal(d3.axisBottom(x)).tickSize(kMargin.top - bottom)).selectAll("text").remove();
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${bottom})`)
        .call(horizontal(d3.axisBottom(x)).tickSizeOuter(0));
  }
  svg.append("g").attr("class", "grid").attr("transform", `translate(${kMargin.left},0)`)
      .call(vertical(d3.axisLeft(y)).tickSize(kMargin.left + kMargin.right - width)).selectAll("text").remove();
  svg.append("g").attr("class", "axis").attr("transform", `translate(${kMargin.left},0)`)
      .call(vertical(d3.axisLeft(y)).tickSizeOuter(0));
  if (names.x) {
    svg.append("text").attr("class", "axis-name").attr("x", (kMargin.left + width - kMargin.right) / 2).attr("y", height - 8)
        .attr("text-anchor", "middle").text(names.x);
  }
  svg.append("text").attr("class", "axis-name").attr("transform", `translate(13,${(kMargin.top + bottom) / 2}) rotate(-90)`)
      .attr("text-anchor", "middle").text(names.y);
  return svg.append("g");
}

// Marks of a logarithmic axis: powers of ten, with halves and fifths where these are few.
function decades(scale, count) {
  const [low, high] = scale.domain();
  const marks = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); ++e) {
    for (const m of [1, 2, 5]) marks.push(m * 10 ** e);
  }
  let inside = marks.filter((mark) => mark >= low * 0.999 && mark <= high * 1.001);
  if (inside.length > count) inside = inside.filter((mark) => Math.abs(Math.log10(mark) % 1) < 1e-9);
  const step = Math.ceil(inside.length / count);
  return inside.filter((_, i) => i % step === 0);
}

// Names of groups as buttons, of which one can be pressed to fade all others, in all charts of the page.
const groups = {chosen: -1, watchers: []};
const faded = (group) => groups.chosen >= 0 && group !== groups.chosen;
function groupKeys(figure, names) {
  if (names.length < 2) return;
  const keys = add(figure, "div", {class: "keys"});
  names.forEach((name, group) => {
    const button = add(keys, "button", {type: "button", "aria-pressed": "false", title: "show this group alone"});
    marker(add(button, "i", {class: "key"}), group);
    button.append(name);
    button.addEventListener("click", () => {
      groups.chosen = groups.chosen === group ? -1 : group;
      for (const watcher of groups.watchers) watcher();
    });
  });
  groups.watchers.push(() => keys.querySelectorAll("button").forEach(
      (button, i) => button.setAttribute("aria-pressed", String(i === groups.chosen))));
}
function marker(place, group) {
  d3.select(place).append("svg").attr("viewBox", "-5 -5 10 10").attr("aria-hidden", "true")
      .append("path").attr("d", shape(group)).attr("fill", colour(group));
}

// What the lines and rings of a plot stand for: pairs of a drawing of 20 by 10 (SVG's path and how it is stroked) and words.
function lineKeys(figure, entries) {
  const keys = add(figure, "div", {class: "keys"});
  for (const [path, style, words] of entries) {
    const key = add(keys, "span");
    d3.select(add(key, "i", {class: "key line"})).append("svg").attr("viewBox", "0 0 20 10").attr("aria-hidden", "true")
        .append("path").attr("d", path).attr("style", `fill:none;${style}`);
    key.append(words);
  }
}

// Says what is nearest to the pointer; arrow keys go from point to point.
function inspect(plot, svg, tip, points) {
  let at = -1;
  const show = (i) => {
    at = i;
    svg.selectAll(".ring").remove();
    if (i < 0) return tip.hide();
    const p = points[i];
    svg.append("circle").attr("class", "ring").attr("cx", p.px).attr("cy", p.py).attr("r", 8)
        .attr("fill", "none").attr("stroke", "var(--text)");
    tip.show(p.text, p.px, p.py);
  };
  svg.on("pointermove", null).on("pointerleave", null);
  const node = svg.node();
  node.onpointermove = (event) => {
    const box = node.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = -1, least = 20 ** 2;
    points.forEach((p, i) => {
      const far = (p.px - x) ** 2 + (p.py - y) ** 2;
      if (far < least) { least = far; best = i; }
    });
    show(best);
  };
  node.onpointerleave = () => show(-1);
  node.onblur = () => show(-1);
  node.onkeydown = (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (event.key === "Escape") show(-1);
    if (!step || points.length === 0) return;
    event.preventDefault();
    show((at + step + points.length) % points.length);
  };
}

// Puts names beside points that have a number, apart from marks and each other. Where a name does not fit, or other marks
// are as near to it, the number.
function nameMarks(body, shown, width, height) {
  const boxAround = (x, y, half) => [x - half, y - half, x + half, y + half];
  const apart = (a, b) => a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
  const taken = shown.map((p) => boxAround(p.px, p.py, 5));
  const place = (p, words, far) => {
    const near = (q, box) => q.px > box[0] - 3 && q.px < box[2] + 3 && q.py > box[1] - far && q.py < box[3] + far;
    const text = body.append("text").attr("class", `mark-name${faded(p.group) ? " faded" : ""}`).text(words);
    const wide = text.node().getComputedTextLength();
    for (const [x, y] of [[-wide / 2, -10], [-wide / 2, 20], [9, 4], [-9 - wide, 4], [7, -8], [7, 17], [-7 - wide, -8],
                          [-7 - wide, 17]]) {
      const [left, base] = [p.px + x, p.py + y];
      const box = [left - 2, base - 11, left + wide + 2, base + 3];
      if (box[0] < kMargin.left || box[2] > width - 2 || box[1] < 0 || box[3] > height - kMargin.bottom) continue;
      if (!taken.every((other) => apart(box, other))) continue;
      if (far > 0 && shown.some((q) => q.index !== p.index && near(q, box))) continue;
      taken.push(box);
      text.attr("x", left).attr("y", base);
      return true;
    }
    text.remove();
    return false;
  };
  for (const p of shown.filter((q) => q.number).sort((a, b) => a.number - b.number)) {
    if (!place(p, p.name, 14)) place(p, String(p.number), 0);
  }
}

// {title, caption, x: [{name, unit}], y: {name, unit}, log, square, front: {best, line}, limit: {x, name}, groups: [name],
// points: [{x: [number], y, group, best, text, number, name}]}: those with a number are named.
// caption: where no heading is the chart's. front: best points stand out, and a line is the most that each x buys, in words that say so. square: both axes are alike, with the diagonal and lines a fifth off.
function scatter(figure, data) {
  if (data.caption) add(figure, "figcaption", {}, data.caption);
  let which = 0;
  if (data.x.length > 1) {
    const controls = add(figure, "div", {class: "controls"});
    const label = add(controls, "label", {}, "across: ");
    const select = add(label, "select");
    data.x.forEach((x, i) => add(select, "option", {value: i}, x.name));
    select.addEventListener("change", () => { which = Number(select.value); redraw(); });
  }
  const plot = add(figure, "div", {class: "plot"});
  const svg = d3.select(plot).append("svg").attr("role", "img").attr("tabindex", 0)
      .attr("aria-label", `${data.title}; arrow keys go from point to point`);
  const tip = tipIn(plot);
  groupKeys(figure, data.groups);
  const lines = [];
  if (data.front) {
    lines.push(["M10 1.2a3.8 3.8 0 1 0 .01 0", "stroke:var(--text);stroke-width:2", data.front.best]);
    lines.push(["M1 8H8V2H19", "stroke:var(--strong);stroke-width:1.5", data.front.line]);
  }
  if (data.square) {
    lines.push(["M2 10L18 0", "stroke:var(--strong);stroke-width:1.5", `${data.y.name} as ${data.x[0].name}`]);
    lines.push(["M2 10L18 0", "stroke:var(--strong);stroke-width:1.5;stroke-dasharray:4 3", "a fifth off"]);
  }
  if (data.limit) lines.push(["M1 5H19", "stroke:var(--limit);stroke-width:1.5;stroke-dasharray:4 3", data.limit.name]);
  lineKeys(figure, lines);
  const redraw = keepDrawn(plot, (width) => {
    const height = Math.round(Math.max(300, Math.min(data.square ? width * 0.75 : width * 0.5, 620)));
    const xs = data.points.map((p) => p.x[which]), ys = data.points.map((p) => p.y);
    const unitOf = (axis, values) =>
        data.square ? {scale: 1, name: axis.unit} : multiple(Math.max(...values), axis.unit);
    const xUnit = unitOf(data.x[which], xs), yUnit = unitOf(data.y, ys);
    const far = (values) => data.log || Math.max(...values) > 30 * Math.min(...values);
    const scaleOf = (values, unit, range) => {
      let low = Math.min(...values) / unit.scale, high = Math.max(...values) / unit.scale;
      if (far(values)) return d3.scaleLog().domain([low / 1.3, high * 1.3]).range(range);
      // From 0, but where all values are far from it: they would lie on one spot.
      const span = Math.max(high - low, 0.1 * high);
      return d3.scaleLinear().domain(low < 0.7 * high ? [0, high * 1.08] : [low - 0.25 * span, high + 0.25 * span])
          .range(range);
    };
    const all = data.square ? xs.concat(ys) : null;
    const x = scaleOf(all || xs, xUnit, [kMargin.left, width - kMargin.right]);
    const y = scaleOf(all || ys, yUnit, [height - kMargin.bottom, kMargin.top]);
    const ticks = {};
    if (far(all || xs)) ticks.x = (count) => decades(x, count);
    if (far(all || ys)) ticks.y = (count) => decades(y, count);
    const body = framed(svg, width, height, x, y,
                        {x: `${data.x[which].name}, ${xUnit.name}`, y: `${data.y.name}, ${yUnit.name}`}, ticks);
    if (data.square) {
      const [low, high] = x.domain();
      for (const factor of [1, 1.2, 1 / 1.2]) {
        body.append("line").attr("x1", x(Math.max(low, low / factor))).attr("y1", y(Math.max(low, low * factor)))
            .attr("x2", x(Math.min(high, high / factor))).attr("y2", y(Math.min(high, high * factor)))
            .attr("stroke", "var(--strong)").attr("stroke-dasharray", factor === 1 ? null : "5 4");
      }
    }
    const shown = data.points.map((p, index) => ({...p, index, px: x(p.x[which] / xUnit.scale), py: y(p.y / yUnit.scale)}));
    if (data.front) {
      // The most that each price buys.
      let best = 0;
      const front = [...shown].sort((a, b) => a.px - b.px || a.py - b.py).filter((p) => {
        if (p.y <= best) return false;
        best = p.y;
        return true;
      });
      const steps = front.map((p, i) => (i === 0 ? `M${p.px} ${p.py}` : `H${p.px}V${p.py}`)).join("");
      body.append("path").attr("class", "front").attr("d", `${steps}H${width - kMargin.right}`);
    }
    if (data.limit) {
      const at = x(data.limit.x / xUnit.scale), right = width - kMargin.right;
      if (at > kMargin.left && at < right) {
        body.append("line").attr("class", "limit").attr("x1", at).attr("x2", at).attr("y1", kMargin.top)
            .attr("y2", height - kMargin.bottom);
        body.append("text").attr("class", "limit-name").attr("x", at + (at < right - 60 ? 5 : -5)).attr("y", kMargin.top + 12)
            .attr("text-anchor", at < right - 60 ? "start" : "end").text(data.limit.name);
      }
    }
    body.selectAll("path.point").data([...shown].sort((a, b) => (a.best || 0) - (b.best || 0))).enter().append("path")
        .attr("class", (p) => `point${data.front && !p.best ? " dominated" : ""}${faded(p.group) ? " faded" : ""}`)
        .attr("d", (p) => shape(p.group)).attr("fill", (p) => colour(p.group))
        .attr("stroke", (p) => (!data.front ? null : p.best ? "var(--text)" : colour(p.group)))
        .attr("stroke-width", (p) => (p.best ? 2 : 1)).attr("fill-opacity", data.front ? null : 0.75)
        .attr("transform", (p) => `translate(${p.px.toFixed(1)},${p.py.toFixed(1)})`);
    nameMarks(body, shown, width, height);
    inspect(plot, svg, tip, shown.filter((p) => !faded(p.group)).sort((a, b) => a.px - b.px));
  });
  groups.watchers.push(redraw);
}

// {title, columns: [{name, errors: [[error, group, text]]}]}: dots by column, with the median and
// the middle nine tenths. Errors beyond twice the measured time stand at the end of the axis.
function strip(figure, data) {
  const plot = add(figure, "div", {class: "plot"});
  const svg = d3.select(plot).append("svg").attr("role", "img").attr("tabindex", 0)
      .attr("aria-label", `${data.title}; arrow keys go from point to point`);
  const tip = tipIn(plot);
  const redraw = keepDrawn(plot, (width) => {
    const all = data.columns.flatMap((column) => column.errors.map(([error]) => Math.abs(error)));
    const reach = Math.min(1, Math.max(0.1, Math.ceil(10 * Math.max(...all)) / 10));
    const column = (width - kMargin.left - kMargin.right) / data.columns.length;
    // Names that do not fit beside each other lean.
    const leaning = data.columns.some((c) => Math.max(c.name.length, 6) * 7 > column - 6);
    const longest = Math.max(...data.columns.map((c) => c.name.length + 7));
    const below = leaning ? 22 + longest * 6.4 : 44;
    const height = 250 + below;
    const y = d3.scaleLinear().domain([-reach, reach]).range([250, kMargin.top]);
    const noAxis = () => 0;
    const body = framed(svg, width, height, noAxis, y, {y: "error, %"},
                        {y: () => y.ticks(5), yText: (v) => `${v > 0 ? "+" : v < 0 ? "−" : ""}${Math.abs(Math.round(100 * v))}`});
    svg.select("text.axis-name").attr("transform", `translate(13,${(kMargin.top + 250) / 2}) rotate(-90)`);
    body.append("line").attr("x1", kMargin.left).attr("x2", width - kMargin.right).attr("y1", y(0)).attr("y2", y(0))
        .attr("stroke", "var(--strong)");
    const points = [];
    data.columns.forEach((c, i) => {
      const middle = kMargin.left + (i + 0.5) * column;
      const half = Math.min(0.4 * column, 50);
      const sorted = [...c.errors].sort((a, b) => a[0] - b[0]);
      sorted.forEach(([error, group, text], rank) => {
        const held = Math.max(-reach, Math.min(reach, error));
        points.push({px: middle + (2 * ((rank * 0.618034) % 1) - 1) * half, py: y(held), group, text});
      });
      const values = sorted.map(([error]) => Math.max(-reach, Math.min(reach, error)));
      const line = (x1, y1, x2, y2, wide) => body.append("line").attr("x1", x1).attr("y1", y1).attr("x2", x2)
          .attr("y2", y2).attr("stroke", "var(--text)").attr("stroke-width", wide);
      line(middle, y(d3.quantile(values, 0.05)), middle, y(d3.quantile(values, 0.95)), 1.5);
      const median = y(d3.quantile(values, 0.5));
      line(middle - Math.min(half, 14), median, middle + Math.min(half, 14), median, 3);
      const count = `n = ${values.length}`;
      if (leaning) {
        body.append("text").attr("transform", `translate(${middle + 4},266) rotate(-68)`).attr("text-anchor", "end")
            .text(`${c.name} (${values.length})`);
      } else {
        body.append("text").attr("x", middle).attr("y", 270).attr("text-anchor", "middle").text(c.name);
        body.append("text").attr("x", middle).attr("y", 286).attr("text-anchor", "middle").text(count);
      }
    });
    body.selectAll("path.point").data(points).enter().append("path")
        .attr("class", (p) => `point${faded(p.group) ? " faded" : ""}`).attr("d", (p) => shape(p.group))
        .attr("fill", (p) => colour(p.group)).attr("fill-opacity", 0.7)
        .attr("transform", (p) => `translate(${p.px.toFixed(1)},${p.py.toFixed(1)}) scale(.8)`);
    inspect(plot, svg, tip, points.filter((p) => !faded(p.group)));
  });
  lineKeys(figure, [["M4 5H16", "stroke:var(--text);stroke-width:3", "median"],
                    ["M10 0V10", "stroke:var(--text);stroke-width:1.5", "middle nine tenths"]]);
  groups.watchers.push(redraw);
}

// The stretch of time that the timeline and the memory below it both show.
const view = {
  begin: 0, end: 1, whole: 1, watchers: [],
  set(begin, end) {
    const span = Math.min(this.whole, Math.max(end - begin, this.whole * 1e-6));
    this.begin = Math.max(0, Math.min(begin, this.whole - span));
    this.end = this.begin + span;
    for (const watcher of this.watchers) watcher();
  },
  zoom(factor, at = (this.begin + this.end) / 2) {
    const span = (this.end - this.begin) / factor;
    const begin = at - (at - this.begin) / factor;
    this.set(begin, begin + span);
  },
  move(share) {
    const by = share * (this.end - this.begin);
    this.set(this.begin + by, this.end + by);
  },
};

// Buttons, keys, wheel and drag (of D3) that zoom and move `view`.
function zoomControls(figure, surface, rangeOf) {
  const controls = add(figure, "div", {class: "controls"});
  const button = (text, name, act) =>
      add(controls, "button", {type: "button", "aria-label": name, title: name}, text).addEventListener("click", act);
  button("+", "zoom in", () => view.zoom(2));
  button("−", "zoom out", () => view.zoom(0.5));
  button("◀", "earlier", () => view.move(-0.5));
  button("▶", "later", () => view.move(0.5));
  button("all", "the whole timeline", () => view.set(0, view.whole));
  surface.addEventListener("keydown", (event) => {
    const act = {"+": () => view.zoom(2), "=": () => view.zoom(2), "-": () => view.zoom(0.5),
                 ArrowLeft: () => view.move(-0.2), ArrowRight: () => view.move(0.2), Home: () => view.set(0, view.whole),
                 "0": () => view.set(0, view.whole)}[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  let own = false;
  const zoom = d3.zoom().scaleExtent([1, 1e6]).on("zoom", () => {
    if (own) return;
    const [left, right] = rangeOf();
    const shown = d3.zoomTransform(surface).rescaleX(d3.scaleLinear().domain([0, view.whole]).range([left, right]));
    view.set(...shown.domain());
  });
  // The wheel alone scrolls the page.
  zoom.filter((given) => {
    const event = given && given.type ? given : d3.event;
    return event.type === "wheel" ? event.ctrlKey || event.metaKey : !event.button;
  });
  const sync = () => {
    const [left, right] = rangeOf();
    zoom.extent([[left, 0], [right, 1]]).translateExtent([[left, -Infinity], [right, Infinity]]);
    const k = view.whole / (view.end - view.begin);
    const x = left - k * (left + (right - left) * view.begin / view.whole);
    own = true;
    d3.select(surface).call(zoom.transform, d3.zoomIdentity.translate(x, 0).scale(k));
    own = false;
  };
  d3.select(surface).call(zoom).on("dblclick.zoom", null);
  return {controls, sync};
}

// The context of a canvas of so many CSS pixels, cleared, as sharp as the screen is, which draws between these x alone.
function brush(canvas, width, height, left, right) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const c = canvas.getContext("2d");
  c.scale(ratio, ratio);
  c.beginPath();
  c.rect(left, 0, right - left, height);
  c.clip();
  c.textAlign = "center";
  c.textBaseline = "middle";
  c.font = "11px sans-serif";
  return c;
}

// Axis of the shown stretch of time, in one unit; long stretches near each other count from the left end.
function timeAxis(svg, x, top, width) {
  const [begin, end] = x.domain();
  const unit = timeUnit(end - begin);
  const offset = begin > 50 * (end - begin) ? begin : 0;
  const shown = d3.scaleLinear().domain([(begin - offset) / unit.scale, (end - offset) / unit.scale]).range(x.range());
  svg.selectAll(".time").remove();
  const group = svg.append("g").attr("class", "time");
  group.append("g").attr("class", "axis").attr("transform", `translate(0,${top})`)
      .call(d3.axisBottom(shown).ticks(Math.max(2, Math.floor(width / 110))).tickSizeOuter(0));
  group.append("text").attr("class", "axis-name").attr("x", (x.range()[0] + x.range()[1]) / 2).attr("y", top + 36)
      .attr("text-anchor", "middle")
      .text(offset > 0 ? `time, ${unit.name} after ${digits(offset, 8)} s` : `time, ${unit.name}`);
}

const kKinds = ["forward", "backward", "input gradients", "weight gradients", "send", "gradients", "shared gradients",
                "parameters", "optimizer"];
const kKindColours = ["forward", "backward", "backward", "weight", "send", "sync", "sync", "sync", "optimizer"];
// Of the parts of a layer's time, names and the style's names of colours, which no pass or transfer has.
const kPartNames = ["compute", "TP", "CP", "EP", "host memory"];
const kPartColours = [null, "part-tp", "part-cp", "part-ep", "part-host"];

// Events as the program's LaneWriter has written them.
function decoded(lane, tick) {
  const next = new Map();
  let end = 0;
  return lane.events.map((entry) => {
    const [number, gap = 0, given] = Array.isArray(entry) ? entry : [entry];
    const [kind, chunk, round, peer, gradients, length] = lane.classes[number];
    const series = `${kind} ${chunk} ${peer} ${gradients}`;
    const batch = given === undefined ? next.get(series) || 0 : given;
    next.set(series, batch + 1);
    const begin = end + gap * tick;
    end = begin + length;
    return {kind, chunk, round, peer, gradients, length, begin, end, batch};
  });
}

// {end_s, tick_s, rounds, chunks, omitted_s, edges: [[row, row]], layers: {names, costs, stages},
//  stages: [{stage, lane, title, passes, transfers}]}
function timeline(figure, data) {
  view.whole = view.end = data.end_s;
  const rows = data.stages.map((stage, r) => ({
    ...stage, passes: decoded(stage.passes, data.tick_s), transfers: decoded(stage.transfers, data.tick_s),
    chunkLayers: data.layers.stages[r],
  }));
  for (const row of rows) row.longest = Math.max(0, ...row.transfers.map((event) => event.length));
  const lanes = Math.max(...rows.map((row) => row.lane)) + 1;
  const graph = rows.length > 1 ? 14 * lanes + 12 : 0;
  let layered = false;
  const [passHeight, layerHeight, stripeHeight, transferHeight] = [20, 22, 5, 10];
  const rowHeight = () => passHeight + transferHeight + 6 + (layered ? layerHeight + 1 : 0);
  const left = () => graph + 44, right = (width) => width - 12;

  const place = add(figure, "div");
  const plot = add(figure, "div", {class: "plot"});
  const svg = d3.select(plot).append("svg").attr("aria-hidden", "true");
  const canvas = add(plot, "canvas", {tabindex: 0, role: "img", "aria-label":
      `When each of ${rows.length} stages does what, ${duration(data.end_s)} in all. ` +
      "Keys: plus and minus zoom, arrows move, 0 shows all."});
  const tip = tipIn(plot);
  let width = 0;
  const {controls, sync} = zoomControls(place, canvas, () => [left(), right(width || 600)]);
  // As many passes as can be told apart.
  const typical = Math.max(data.end_s * 1e-6, ...rows.map((row) => d3.median(row.passes, (event) => event.length) || 0));
  const few = 40 * typical;
  const jump = (text, act) => add(controls, "button", {type: "button"}, text).addEventListener("click", act);
  jump("start", () => view.set(0, few));
  jump("end", () => view.set(data.end_s - few, data.end_s));
  const toggle = add(controls, "button", {type: "button", "aria-pressed": "false"}, "layers");
  toggle.addEventListener("click", () => {
    layered = !layered;
    toggle.setAttribute("aria-pressed", String(layered));
    // Close enough to tell layers apart.
    const pass = rows[0].passes.find((event) => event.begin >= view.begin && event.kind <= 3);
    if (layered && pass && view.end - view.begin > 12 * typical) view.set(pass.begin, pass.begin + 6 * typical);
    redraw();
  });
  const hint = add(place, "p", {class: "note"});
  hint.textContent = "Drag to move; ctrl and the wheel, two fingers, or + and − zoom; point at a box to see what it is.";
  const said = add(figure, "p", {class: "note"});
  const partKeys = add(figure, "div", {class: "keys", hidden: ""});
  add(partKeys, "span", {}, "Layers below the passes; at the end of each a stripe of what is exposed of:");
  kPartNames.forEach((name, part) => {
    if (part === 0 || !data.layers.costs.some((cost) => cost.some((times) => times[part] > 0))) return;
    const key = add(partKeys, "span");
    add(key, "i", {class: "key", style: `background:var(--${kPartColours[part]})`});
    key.append(name);
  });

  const layersOf = (row, event) => {
    const parts = {0: [0], 1: [1, 2, 3], 2: [1, 2], 3: [3]}[event.kind];
    const runs = row.chunkLayers[event.chunk];
    if (!parts || !runs) return [];
    const boxes = [];
    for (const [first, count, cost] of runs) {
      const sums = [0, 0, 0, 0, 0];
      for (const part of parts) data.layers.costs[cost][part].forEach((time, i) => { sums[i] += time; });
      const whole = sums.reduce((a, b) => a + b, 0);
      for (let i = 0; i < count && whole > 0; ++i) boxes.push({layer: first + i, sums, whole});
    }
    if (event.kind !== 0) boxes.reverse();
    const all = boxes.reduce((sum, box) => sum + box.whole, 0);
    let at = event.begin;
    for (const box of boxes) {
      box.begin = at;
      at += box.whole / all * event.length;
      box.end = at;
    }
    return boxes;
  };
  const layerName = (layer) => data.layers.names[layer] || `layer ${layer}`;
  const textOf = (row, event) => {
    let text = `stage ${row.stage}: ${kKinds[event.kind]}`;
    if (event.kind <= 3) text += ` of micro-batch ${event.batch}`;
    if (event.kind <= 3 && data.chunks > 1) text += `, chunk ${event.chunk}`;
    if (event.kind === 4) {
      text += ` ${event.gradients ? "gradients" : "activations"} of micro-batch ${event.batch} to stage ${event.peer + 1}`;
    }
    if (event.kind === 5) text += `, bucket ${event.batch}`;
    if (data.rounds > 1) text += `, round ${event.round + 1}`;
    return `${text}\n${duration(event.length)} from ${digits(event.begin, 6)} s`;
  };

  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    return (name) => style.getPropertyValue(`--${name}`).trim();
  };
  const from = (events, time, slack) => {
    let low = 0, high = events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (events[middle].begin < time - slack) low = middle + 1; else high = middle;
    }
    return Math.max(0, low - 1);
  };
  const paint = () => {
    const height = rowHeight() * rows.length;
    const x = d3.scaleLinear().domain([view.begin, view.end]).range([left(), right(width)]);
    timeAxis(svg, x, height + 4, width);
    const c = brush(canvas, width, height, left(), right(width));
    const value = colours();
    const box = (event, top, tall, fill, least = 0.3) => {
      const x0 = x(event.begin);
      const wide = Math.max(least, x(event.end) - x0 - Math.min(0.6, 0.1 * (x(event.end) - x0)));
      c.fillStyle = fill;
      c.fillRect(x0, top, wide, tall);
      return {x0, wide};
    };
    const label = (text, placed, top, tall, ink) => {
      const begin = Math.max(placed.x0, left()), end = Math.min(placed.x0 + placed.wide, right(width));
      if (end - begin < text.length * 6.6 + 3) return;
      c.fillStyle = ink;
      c.fillText(text, (begin + end) / 2, top + tall / 2 + 0.5);
    };
    rows.forEach((row, r) => {
      const top = r * rowHeight() + 2;
      for (let i = from(row.passes, view.begin, 0); i < row.passes.length && row.passes[i].begin < view.end; ++i) {
        const event = row.passes[i];
        if (event.end < view.begin) continue;
        const light = (event.chunk + event.round) % 2 === 1 && event.kind < 4;
        const placed = box(event, top, passHeight, value(kKindColours[event.kind] + (light ? "2" : "")));
        const dark = light || (event.kind >= 1 && event.kind <= 3);
        if (event.kind <= 3) label(String(event.batch), placed, top, passHeight, dark ? "#16202b" : "#fff");
        if (!layered || placed.wide < 12) continue;
        layersOf(row, event).forEach((part, n) => {
          const at = top + passHeight + 1;
          const inside = box(part, at, layerHeight, value(n % 2 ? "layer2" : "layer"));
          label(layerName(part.layer), inside, at, layerHeight - stripeHeight, value("text"));
          // Exposed collectives at the end of the layer's time.
          let end = part.end;
          for (let k = 4; k >= 1; --k) {
            const length = part.sums[k] / part.whole * (part.end - part.begin);
            if (length <= 0) continue;
            box({begin: end - length, end}, at + layerHeight - stripeHeight, stripeHeight, value(kPartColours[k]));
            end -= length;
          }
        });
      }
      const below = top + passHeight + 1 + (layered ? layerHeight + 1 : 0);
      const first = from(row.transfers, view.begin, row.longest), last = from(row.transfers, view.end, 0);
      // A few are all to be seen; of very many that their colour is as pale as their time is little.
      const least = last - first > (right(width) - left()) / 2 ? 0 : 0.3;
      for (let i = first; i < row.transfers.length && row.transfers[i].begin < view.end; ++i) {
        box(row.transfers[i], below, transferHeight, value(kKindColours[row.transfers[i].kind]), least);
      }
    });
    if (data.omitted_s) {
      c.fillStyle = value("line");
      c.fillRect(x(data.omitted_s[0]), 0, x(data.omitted_s[1]) - x(data.omitted_s[0]), height);
      label("not drawn", {x0: x(data.omitted_s[0]), wide: x(data.omitted_s[1]) - x(data.omitted_s[0])}, 0, height,
            value("text"));
    }
    const narrow = rows.some((row) => row.passes.length > 0 && (right(width) - left()) * typical <
                                                                  1.5 * (view.end - view.begin));
    said.textContent =
        (narrow ? "Passes are too narrow here to be told apart: zoom in, or look at the start or the end. " : "") +
        (data.sends_left_out > 0 ? `The ${data.sends_left_out} transfers between stages are too many to be drawn.` : "");
    partKeys.hidden = !layered || partKeys.children.length === 1;
    sync();
  };
  const frame = (given) => {
    width = given;
    const height = rowHeight() * rows.length;
    svg.selectAll("*").remove();
    svg.attr("width", width).attr("height", height + 46);
    const lane = (r) => 10 + 14 * rows[r].lane, middle = (r) => r * rowHeight() + 2 + passHeight / 2;
    for (const [a, b] of rows.length > 1 ? data.edges : []) {
      const by = rows.some((row, r) => r > a && r < b && row.lane === rows[a].lane) && rows[a].lane === rows[b].lane ? 11 : 0;
      svg.append("path").attr("fill", "none").attr("stroke", "var(--strong)").attr("stroke-width", 1.5)
          .attr("d", `M${lane(a)} ${middle(a)}C${lane(a) + by} ${middle(a) + rowHeight() / 2} ` +
                     `${lane(b) + by} ${middle(b) - rowHeight() / 2} ${lane(b)} ${middle(b)}`);
    }
    rows.forEach((row, r) => {
      if (rows.length > 1) {
        svg.append("circle").attr("class", "stage").attr("cx", lane(r)).attr("cy", middle(r)).attr("r", 4.5)
            .attr("fill", "var(--accent)").append("title").text(row.title);
      }
      svg.append("text").attr("x", left() - 8).attr("y", middle(r) + 4).attr("text-anchor", "end").text(row.stage);
    });
    svg.append("text").attr("class", "row-name").attr("x", left() - 8).attr("y", height + 40).attr("text-anchor", "end").text("stage");
    paint();
  };
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const r = Math.floor(py / rowHeight());
    const row = rows[r];
    const time = view.begin + (px - left()) / (right(width) - left()) * (view.end - view.begin);
    if (!row) return tip.hide();
    if (px < left() - 6) return tip.show(row.title, px, py);
    const within = py - r * rowHeight() - 2;
    const events = within <= passHeight + (layered ? layerHeight + 1 : 0) ? row.passes : row.transfers;
    const slack = 2 * (view.end - view.begin) / width;
    let found = null;
    for (let i = from(events, time, row.longest); i < events.length && events[i].begin <= time + slack; ++i) {
      if (events[i].end >= time - slack) found = events[i];
      if (found && found.end >= time) break;
    }
    if (!found) return tip.hide();
    let text = textOf(row, found);
    const part = layered && within > passHeight && layersOf(row, found).find((layer) => layer.end >= time);
    if (part) {
      text = `${layerName(part.layer)}: ` + part.sums.map((time_s, k) => (time_s > 0 ? `${kPartNames[k]} ${duration(time_s)}` : ""))
          .filter(Boolean).join(", ") + `\n${text}`;
    }
    tip.show(text, px, py);
  });
  canvas.addEventListener("pointerleave", () => tip.hide());
  const redraw = keepDrawn(plot, frame);
  view.watchers.push(() => { if (width > 0) paint(); });
}

// {end_s, shown, stages: [{stage, usable_bytes, peak_bytes, kinds: [[name, colour, bytes]],
//   samples: {parts, levels, steps: [part, level, …]}}]}: bytes hold until the next step.
function memory(figure, data) {
  view.whole = Math.max(view.whole, data.end_s);
  let shown = data.stages.findIndex((stage) => stage.stage === data.shown);
  const place = add(figure, "div");
  const plot = add(figure, "div", {class: "plot"});
  const svg = d3.select(plot).append("svg").attr("role", "img").attr("tabindex", 0)
      .attr("aria-label", "Memory of a stage over time. Keys: plus and minus zoom, arrows move, 0 shows all.");
  const tip = tipIn(plot);
  const keys = add(figure, "div", {class: "keys"});
  let width = 0, x = null;
  const {controls, sync} = zoomControls(place, svg.node(), () => [kMargin.left, (width || 600) - kMargin.right]);
  if (data.stages.length > 1) {
    const label = add(controls, "label", {}, "stage ");
    const select = add(label, "select");
    data.stages.forEach((stage, i) => {
      add(select, "option", {value: i}, `${stage.stage}: at most ${GiB(stage.peak_bytes)}` +
                                        (stage.stage === data.shown ? ", the fullest" : ""));
    });
    select.value = shown;
    select.addEventListener("change", () => { shown = Number(select.value); draw(width); });
  }
  const seriesOf = (stage) => {
    const {parts, levels, steps} = stage.samples;
    const series = [];
    for (let i = 0; i < steps.length; i += 2) series.push([steps[i] / parts * data.end_s, levels[steps[i + 1]]]);
    return series;
  };
  const draw = (given) => {
    width = given;
    const height = 300, floor = height - kMargin.bottom;
    const stage = data.stages[shown];
    const series = seriesOf(stage);
    const bounded = stage.usable_bytes < 4 * stage.peak_bytes;
    const most = 1.12 * Math.max(stage.peak_bytes, bounded ? stage.usable_bytes : 0) / 2 ** 30;
    x = d3.scaleLinear().domain([view.begin, view.end]).range([kMargin.left, width - kMargin.right]);
    const y = d3.scaleLinear().domain([0, most]).range([floor, kMargin.top]);
    const body = framed(svg, width, height, () => 0, y, {y: "memory, GiB"});
    timeAxis(svg, x, floor, width);
    // What changes lies on top of what does not.
    const steady = stage.kinds.filter(([name, , bytes]) => name !== "activations" && bytes > 0);
    const moving = stage.kinds.find(([name]) => name === "activations");
    let base = 0;
    for (const [name, fill, bytes] of steady) {
      body.append("rect").attr("x", kMargin.left).attr("width", width - kMargin.left - kMargin.right)
          .attr("y", y((base + bytes) / 2 ** 30)).attr("height", y(base / 2 ** 30) - y((base + bytes) / 2 ** 30))
          .attr("fill", fill).append("title").text(`${name} ${GiB(bytes)}`);
      base += bytes;
    }
    const clip = (time) => x(Math.max(view.begin, Math.min(view.end, time)));
    let path = `M${kMargin.left} ${y(base / 2 ** 30)}`, level = base;
    let last = -1, highest = 0;
    for (const [time, bytes] of series) {
      if (time > view.end) break;
      if (time <= view.begin) { level = bytes; continue; }
      // The fullest of what shares half a pixel.
      const at = clip(time);
      if (at - last < 0.5) { highest = Math.max(highest, bytes); level = bytes; continue; }
      path += `V${y(Math.max(level, highest) / 2 ** 30).toFixed(1)}H${at.toFixed(1)}`;
      [last, highest, level] = [at, bytes, bytes];
    }
    path += `V${y(level / 2 ** 30).toFixed(1)}H${clip(data.end_s)}V${y(base / 2 ** 30)}Z`;
    body.append("path").attr("d", path).attr("fill", moving[1]);
    if (bounded) {
      const at = y(stage.usable_bytes / 2 ** 30);
      for (const line of ["limit-back", "limit"]) {
        body.append("line").attr("class", line).attr("x1", kMargin.left).attr("x2", width - kMargin.right)
            .attr("y1", at).attr("y2", at);
      }
      body.append("text").attr("class", "limit-name").attr("x", width - kMargin.right - 4).attr("y", at - 5)
          .attr("text-anchor", "end").text(`usable: ${GiB(stage.usable_bytes)}`);
    }
    keys.replaceChildren();
    for (const [name, fill, bytes] of [...steady, moving]) {
      const key = add(keys, "span");
      add(key, "i", {class: "key", style: `background:${fill}`});
      key.append(`${name} ${name === "activations" ? `at most ${GiB(Math.max(0, stage.peak_bytes - base))}` : GiB(bytes)}`);
    }
    svg.node().onpointermove = (event) => {
      const box = svg.node().getBoundingClientRect();
      const time = x.invert(event.clientX - box.left);
      const held = series.filter(([at]) => at <= time).pop();
      if (!held || time > view.end) return tip.hide();
      tip.show(`${digits(time, 6)} s: ${GiB(held[1])}, of which activations ${GiB(Math.max(0, held[1] - base))}`,
               event.clientX - box.left, event.clientY - box.top);
    };
    svg.node().onpointerleave = () => tip.hide();
    sync();
  };
  keepDrawn(plot, draw);
  view.watchers.push(() => { if (width > 0) draw(width); });
}

// {end_s, rows: [{name, kind, cores, busy: [[from, cores]]}],
//  boxes: [[first row, last row, begin, end, part, name, on all cores]]}: of several cores, busy says how many are.
function cores(figure, data) {
  view.whole = view.end = data.end_s;
  const parts = ["forward", "input gradient", "weight gradient", "optimizer"];
  const fills = ["#2f6aa8", "#e08e3c", "#c9b037", "#2f7049"], inks = ["#fff", "#16202b", "#16202b", "#fff"];
  const [tall, gap, kindGap, left] = [24, 3, 12, 92];
  const right = (width) => width - 12;
  let bottom = 2;
  const tops = data.rows.map((row, r) => {
    if (r > 0 && row.kind !== data.rows[r - 1].kind) bottom += kindGap;
    bottom += tall + gap;
    return bottom - tall - gap;
  });
  const boxes = data.boxes.map(([first, last, begin, end, part, name, all]) => ({
    begin, end, part, name, all, top: tops[first], height: tops[last] + tall - tops[first],
  }));
  const place = add(figure, "div");
  const plot = add(figure, "div", {class: "plot"});
  const svg = d3.select(plot).append("svg").attr("aria-hidden", "true");
  const canvas = add(plot, "canvas", {tabindex: 0, role: "img", "aria-label":
      `When each core runs what, ${duration(data.end_s)} in all. Keys: plus and minus zoom, arrows move, 0 shows all.`});
  const tip = tipIn(plot);
  let width = 0;
  const {sync} = zoomControls(place, canvas, () => [left, right(width || 600)]);
  add(place, "p", {class: "note"},
      "Drag to move; ctrl and the wheel, two fingers, or + and − zoom; point at a box to see what it is.");
  const xOf = () => d3.scaleLinear().domain([view.begin, view.end]).range([left, right(width)]);

  const paintBox = (c, x, box) => {
    const whole = x(box.end) - x(box.begin), wide = Math.max(0.4, whole - Math.min(0.8, whole / 8));
    c.fillStyle = fills[box.part];
    c.fillRect(x(box.begin), box.top, wide, box.height);
    const from = Math.max(x(box.begin), left), to = Math.min(x(box.begin) + wide, right(width));
    const letters = c.measureText(box.name).width + 6;
    c.fillStyle = inks[box.part];
    if (letters <= to - from) {
      c.fillText(box.name, (from + to) / 2, box.top + box.height / 2 + 0.5);
    } else if (letters <= box.height && to - from >= 14) {
      c.save();
      c.translate((from + to) / 2, box.top + box.height / 2);
      c.rotate(-Math.PI / 2);
      c.fillText(box.name, 0, 0.5);
      c.restore();
    }
  };
  const paint = () => {
    const x = xOf();
    timeAxis(svg, x, bottom + 2, width);
    const c = brush(canvas, width, bottom, left, right(width));
    const style = getComputedStyle(document.documentElement);
    data.rows.forEach((row, r) => {
      c.fillStyle = style.getPropertyValue("--line");
      c.fillRect(left, tops[r], right(width) - left, tall);
      c.fillStyle = style.getPropertyValue("--strong");
      row.busy.forEach(([from, busy], i) => {
        const to = i + 1 < row.busy.length ? row.busy[i + 1][0] : data.end_s;
        const high = tall * busy / row.cores;
        c.fillRect(x(from), tops[r] + tall - high, x(to) - x(from), high);
      });
    });
    for (const box of boxes) if (box.end >= view.begin && box.begin <= view.end) paintBox(c, x, box);
    sync();
  };
  const frame = (given) => {
    width = given;
    svg.selectAll("*").remove();
    svg.attr("width", width).attr("height", bottom + 46);
    data.rows.forEach((row, r) => svg.append("text").attr("x", left - 8).attr("y", tops[r] + tall / 2 + 4)
        .attr("text-anchor", "end").text(row.name));
    paint();
  };
  canvas.addEventListener("pointermove", (event) => {
    const area = canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - area.left, event.clientY - area.top];
    const time = xOf().invert(px), slack = (view.end - view.begin) / width;
    const near = boxes.filter((box) => py >= box.top && py <= box.top + box.height &&
                                       box.begin - slack <= time && time <= box.end + slack);
    const found = near.find((box) => box.begin <= time && time <= box.end) || near[0];
    if (!found) return tip.hide();
    tip.show(`${found.name}, ${parts[found.part]}${found.all ? ", on all cores" : ""}\n${duration(found.end - found.begin)} ` +
             `from ${duration(found.begin)}`, px, py);
  });
  canvas.addEventListener("pointerleave", () => tip.hide());
  keepDrawn(plot, frame);
  view.watchers.push(() => { if (width > 0) paint(); });
}

// A figure and its unit stay on one line.
const kFigure = /(\d) (?=(?:%|[mµn]?s|min|h|[KMGT]iB|[kMGT]?B(?:\/s)?|[GTPE]?FLOP(?:\/s)?|[kM]?W|[kMG]?J|USD|GPUs?)(?![\w/]))/g;
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let text = texts.nextNode(); text; text = texts.nextNode()) {
  if (!text.parentElement.closest("script, style")) text.data = text.data.replace(kFigure, "$1\u00a0");
}

// What is wider than its place fades where there is more to scroll to.
for (const box of document.querySelectorAll(".scroll")) {
  const mark = () => {
    box.classList.toggle("more-left", box.scrollLeft > 1);
    box.classList.toggle("more-right", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  };
  box.addEventListener("scroll", mark, {passive: true});
  new ResizeObserver(mark).observe(box);
  mark();
}

const charts = {timeline, memory, cores, scatter, strip};
for (const place of document.querySelectorAll("i[data-group]")) marker(place, Number(place.dataset.group));
for (const figure of document.querySelectorAll("figure.chart")) {
  charts[figure.dataset.kind](figure, JSON.parse(figure.querySelector("script").textContent));
}
})();
