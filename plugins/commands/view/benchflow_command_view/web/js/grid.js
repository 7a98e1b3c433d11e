// Task by trial: one line per task, one cell per rollout, one column per arm. The least solved come first.

const GRID_ARMS = 6;

function taskGrid(jid, table) {
  const arms = [...new Set(table.columns.side.texts)].sort();
  const apart = arms.length > 1 && arms.length <= GRID_ARMS; // more than fit side by side get a line each
  const sides = apart ? arms : [""];
  const lines = gridLines(table, arms.length > 1, apart);
  const rows = h("div", { role: "rowgroup", class: "rows" });
  const titles = apart ? ["Task", ...arms.map((arm) => arm || "no arm")] : ["Task", "Trials"];
  const box = h("div", { role: "table", class: "grid", "aria-label": "Tasks by trial", "aria-rowcount": lines.length + 1 },
    h("div", { role: "rowgroup", class: "thead" }, h("div", { role: "row", class: "grid-row th" }, titles.map((name) => h("div", { role: "columnheader", class: "clip" }, name)))), rows);
  box.style.setProperty("--sides", sides.length);
  const make = (i) => {
    const task = lines[i];
    return h("div", { role: "row", class: "grid-row", "aria-rowindex": i + 2 },
      h("div", { role: "cell", class: "clip" }, link(`/job/${jid}?task=${encodeURIComponent(task.name)}`, task.name), task.side && h("span", { class: "soft" }, ` ${task.side}`)),
      sides.map((side) => gridCell(jid, table, task.sides.get(side), apart ? `${side}, ` : "")));
  };
  return { node: box, start: () => new VirtualList(rows, { length: lines.length, guess: 34, make, margin: 300 }) };
}

function gridLines(table, several, apart) {
  const tasks = new Map();
  for (let row = 0; row < table.length; row += 1) {
    const arm = several ? table.text("side", row) : "";
    const name = table.text("task", row);
    const key = apart ? name : `${name}\u0000${arm}`;
    if (!tasks.has(key)) tasks.set(key, { name, side: apart ? "" : arm, sides: new Map(), passed: 0, scored: 0 });
    const task = tasks.get(key);
    const side = apart ? arm : "";
    if (!task.sides.has(side)) task.sides.set(side, { rows: [], passed: 0, scored: 0 });
    const here = task.sides.get(side);
    const outcome = table.text("outcome", row);
    here.rows.push(row);
    for (const one of [task, here]) {
      one.passed += outcome === "passed";
      one.scored += outcome === "passed" || outcome === "failed";
    }
  }
  const lines = [...tasks.values()];
  const rate = (task) => (task.scored ? task.passed / task.scored : -1);
  lines.sort((a, b) => rate(a) - rate(b) || (a.name < b.name ? -1 : 1));
  for (const task of lines) for (const side of task.sides.values()) side.rows.sort((a, b) => table.number("trial", a) - table.number("trial", b));
  return lines;
}

function gridCell(jid, table, side, where) {
  if (!side) return h("div", { role: "cell", class: "soft" }, "not run");
  return h("div", { role: "cell", class: "cells" }, h("span", { class: "number" }, side.scored ? `${side.passed}/${side.scored}` : "–"), side.rows.map((row) => {
    const outcome = table.text("outcome", row);
    const told = `${where}trial ${amount(table.number("trial", row)) || "?"}: ${words(outcome)}${Number.isNaN(table.number("reward", row)) ? "" : `, reward ${amount(table.number("reward", row))}`}`;
    return h("a", { to: `/rollout/${jid}/${table.text("rollout", row)}`, class: `cell is-${known(outcome)}`, title: told, "aria-label": told }, MARKS[outcome] || "·");
  }));
}

const MARKS = { passed: "✓", failed: "✗", errored: "!", verifier_errored: "?", running: "▸", waiting: "·", unfinished: "…", "not run": "·" };
