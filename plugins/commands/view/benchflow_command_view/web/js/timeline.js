// Phases, turns, model calls and tool calls against time. A click leads to the step.

function timeline(data, goTo) {
  const { spans, lanes, begin, end } = data;
  if (!spans.length || end <= begin) return null;
  const lineOf = turnLines(spans, lanes);
  const used = [...new Set(spans.map(lineOf))].sort((a, b) => a - b);
  const [w, row, left] = [1000, 20, 62];
  const x = (t) => left + ((t - begin) / (end - begin)) * (w - left - 4);
  const height = used.length * row + 18;
  const drawn = spans.map(([lane, from, to, step, label, many]) => {
    const y = used.indexOf(lineOf([lane, from, to, step, label])) * row + 3;
    const told = `${label}${many > 1 ? ` and ${many - 1} more` : ""}, ${duration(to - from)} at ${duration(from - begin)}`;
    const box = svg("rect", { class: `span lane-${lanes[lane]}`, x: x(from), y, width: Math.max(1.2, x(to) - x(from)), height: row - 6, rx: 1.5 }, svg("title", {}, told));
    if (step >= 0) box.addEventListener("click", () => goTo(step));
    const room = x(to) - x(from);
    const shown = label.replaceAll("_", " ");
    if (lane > 1 || room < shown.length * 5.6 + 8) return box;
    return [box, svg("text", { class: "inside", x: x(from) + 4, y: y + 10.5 }, shown)];
  });
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const t = begin + part * (end - begin);
    return [svg("line", { class: "tick", x1: x(t), x2: x(t), y1: 0, y2: height - 16 }),
      svg("text", { x: x(t), y: height - 3, "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle" }, duration(t - begin))];
  });
  const names = used.map((line, i) => svg("text", { class: "lane", x: 2, y: i * row + 14 }, lineOf.names.get(line) || { phase: "phases", turn: "turns", model: "model", tool: "tools" }[lanes[Math.floor(line)]]));
  const counts = lanes.map((name, lane) => [name, spans.filter((s) => s[0] === lane).reduce((n, s) => n + s[5], 0)]).filter(([, n]) => n).map(([name, n]) => `${n} ${name}s`).join(", ");
  return h("figure", { class: "timeline", tabindex: "0" },
    svg("svg", { viewBox: `0 0 ${w} ${height}`, role: "img", "aria-label": `timeline of ${duration(end - begin)}: ${counts}` }, ticks, names, drawn));
}

// Turns of several roles have a line each: they may be at work at once.
function turnLines(spans, lanes) {
  const turn = lanes.indexOf("turn");
  const roles = [...new Set(spans.filter((span) => span[0] === turn).map((span) => span[4]))];
  const apart = roles.length > 1 && roles.length <= 8;
  const lineOf = ([lane, , , , label]) => (lane === turn && apart ? lane + roles.indexOf(label) / 10 : lane);
  lineOf.names = new Map(apart ? roles.map((role, i) => [turn + i / 10, role.length > 9 ? `${role.slice(0, 8)}…` : role]) : []);
  return lineOf;
}
