// Small plots, drawn by hand. Each is one picture with a sentence that says the same.

// `unit`: a value from 0 to 1 has its place between them, whatever else there is.
function histogram(title, values, format, { bins = 24, unit = false } = {}) {
  if (!values.length) return null;
  const [least, most] = bounds(values);
  const alone = least === most && !(unit && least >= 0 && most <= 1);
  const [low, high] = alone ? [least - 1, most + 1] : unit && least >= 0 && most <= 1 ? [0, 1] : [least, most];
  const spread = high - low || 1;
  const n = alone ? 9 : bins;
  const heights = new Array(n).fill(0);
  for (const value of values) heights[Math.min(n - 1, Math.floor(((value - low) / spread) * n))] += 1;
  const top = Math.max(...heights);
  const [w, hgt, base] = [240, 84, 66];
  const bar = w / n;
  const bars = heights.map((number, i) => {
    const tall = number ? Math.max(2, (number / top) * (base - 6)) : 0;
    const from = low + (i * spread) / n;
    const label = `${format(from)} to ${format(from + spread / n)}: ${number}`;
    return svg("rect", { class: "bar", x: i * bar + 0.5, y: base - tall, width: Math.max(1, bar - 1), height: tall, rx: 1 }, svg("title", {}, label));
  });
  const middle = median(values);
  const at = ((middle - low) / spread) * w;
  const told = `${title}: ${count(values.length, "value")}, from ${format(least)} to ${format(most)}, median ${format(middle)}`;
  return h("figure", { class: "plot" },
    h("figcaption", {}, title, h("span", { class: "soft" }, `median ${format(middle)}`)),
    svg("svg", { viewBox: `0 0 ${w} ${hgt}`, role: "img", "aria-label": told },
      svg("line", { class: "axis", x1: 0, x2: w, y1: base, y2: base }), bars,
      svg("line", { class: "middle", x1: at, x2: at, y1: 2, y2: base }),
      alone ? svg("text", { x: w / 2, y: hgt - 4, "text-anchor": "middle" }, format(least)) : [svg("text", { x: 0, y: hgt - 4 }, format(low)),
        svg("text", { x: w, y: hgt - 4, "text-anchor": "end" }, format(high))]));
}

function bounds(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

function median(values) {
  const sorted = Float64Array.from(values).sort();
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// Time against cost, one dot per rollout; where there are very many, a sample that is the same each time.
function scatter(title, points, formatX, formatY) {
  if (points.length < 2) return null;
  const step = Math.max(1, Math.ceil(points.length / 1500));
  const kept = points.filter((_, i) => i % step === 0);
  const [w, hgt, base] = [240, 84, 66];
  const [lowX, highX] = bounds(kept.map((p) => p[0]));
  const [lowY, highY] = bounds(kept.map((p) => p[1]));
  const x = (v) => 3 + ((v - lowX) / (highX - lowX || 1)) * (w - 6);
  const y = (v) => base - 3 - ((v - lowY) / (highY - lowY || 1)) * (base - 9);
  const told = `${title}: ${count(points.length, "rollout")}, up to ${formatX(highX)} and ${formatY(highY)}`;
  return h("figure", { class: "plot" },
    h("figcaption", {}, title, h("span", { class: "soft" }, `up to ${formatY(highY)}`)),
    svg("svg", { viewBox: `0 0 ${w} ${hgt}`, role: "img", "aria-label": told },
      svg("line", { class: "axis", x1: 0, x2: w, y1: base, y2: base }),
      kept.map(([a, b, outcome]) => svg("circle", { class: `dot is-${known(outcome)}`, cx: x(a), cy: y(b), r: 2.2 })),
      svg("text", { x: 0, y: hgt - 4 }, formatX(lowX)),
      svg("text", { x: w, y: hgt - 4, "text-anchor": "end" }, formatX(highX))));
}

// The score, its interval, and the bounds that unscored rollouts leave.
function scoreBar(summary) {
  const score = summary.score_ratio;
  if (!has(score) || !summary.scored) return null;
  const [low, high] = summary.score_interval || [score, score];
  const [least, most] = summary.score_bounds || [score, score];
  const x = (v) => 2 + v * 296;
  const told = `score ${percent(score)}, 95 % interval ${percent(low)} to ${percent(high)}, bounds ${percent(least)} to ${percent(most)}`;
  return svg("svg", { class: "score-bar", viewBox: "0 0 300 18", role: "img", "aria-label": told, preserveAspectRatio: "none" },
    svg("rect", { class: "rail", x: 2, y: 7, width: 296, height: 4, rx: 2 }),
    svg("rect", { class: "reach", x: x(least), y: 7, width: Math.max(0, x(most) - x(least)), height: 4 }),
    svg("rect", { class: "interval", x: x(low), y: 4, width: Math.max(1.5, x(high) - x(low)), height: 10, rx: 2 }),
    svg("rect", { class: "score", x: x(score) - 1.5, y: 1, width: 3, height: 16, rx: 1 }));
}

// Counts by outcome as one line.
function outcomeBar(counts) {
  const shown = OUTCOMES.filter((name) => counts[name]);
  const total = shown.reduce((all, name) => all + counts[name], 0);
  if (!total) return null;
  return h("div", { class: "outcome-bar", role: "img", "aria-label": shown.map((name) => `${counts[name]} ${words(name)}`).join(", ") },
    shown.map((name) => h("span", { class: `is-${known(name)}`, css: { "flex-grow": counts[name] }, title: `${counts[name]} ${words(name)}` })));
}

function bars(rows, unit) {
  const top = Math.max(...rows.map(([, value]) => value), 1e-12);
  return h("table", { class: "bars" }, h("tbody", {}, rows.map(([name, value]) => h("tr", {},
    h("th", { scope: "row" }, name),
    h("td", { class: "track" }, h("span", { class: "fill", css: { width: `${value > 0 ? Math.max(0.5, (value / top) * 100) : 0}%` } })),
    h("td", { class: "number" }, `${amount(value)} ${unit || ""}`)))));
}
