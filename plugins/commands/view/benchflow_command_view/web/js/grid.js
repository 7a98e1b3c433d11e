// Task by trial: one line per task, one cell per rollout. The least solved come first.

function taskGrid(jid, table) {
  const tasks = new Map();
  for (let row = 0; row < table.length; row += 1) {
    const side = table.columns.side.texts.length > 1 ? table.text("side", row) : "";
    const name = table.text("task", row);
    const key = `${name}\u0000${side}`;
    if (!tasks.has(key)) tasks.set(key, { name, side, rows: [], passed: 0, scored: 0 });
    const task = tasks.get(key);
    const outcome = table.text("outcome", row);
    task.rows.push(row);
    task.passed += outcome === "passed";
    task.scored += outcome === "passed" || outcome === "failed";
  }
  const lines = [...tasks.values()];
  const rate = (task) => (task.scored ? task.passed / task.scored : -1);
  lines.sort((a, b) => rate(a) - rate(b) || (a.name < b.name ? -1 : 1));
  for (const task of lines) task.rows.sort((a, b) => table.number("trial", a) - table.number("trial", b));
  const rows = h("div", { role: "rowgroup", class: "rows" });
  const box = h("div", { role: "table", class: "grid", "aria-label": "Tasks by trial", "aria-rowcount": lines.length + 1 },
    h("div", { role: "rowgroup", class: "thead" }, h("div", { role: "row", class: "grid-row th" },
      ["Task", "Passed", "Trials"].map((name) => h("div", { role: "columnheader" }, name)))), rows);
  const make = (i) => {
    const task = lines[i];
    return h("div", { role: "row", class: "grid-row", "aria-rowindex": i + 2 },
      h("div", { role: "cell", class: "clip" }, link(`/job/${jid}?task=${encodeURIComponent(task.name)}`, task.name), task.side && h("span", { class: "soft" }, ` ${task.side}`)),
      h("div", { role: "cell", class: "number" }, task.scored ? `${task.passed}/${task.scored}` : "–"),
      h("div", { role: "cell", class: "cells" }, task.rows.map((row) => {
        const outcome = table.text("outcome", row);
        const told = `trial ${amount(table.number("trial", row)) || "?"}: ${words(outcome)}${Number.isNaN(table.number("reward", row)) ? "" : `, reward ${amount(table.number("reward", row))}`}`;
        return h("a", { to: `/rollout/${jid}/${table.text("rollout", row)}`, class: `cell is-${known(outcome)}`, title: told, "aria-label": told }, MARKS[outcome] || "·");
      })));
  };
  return { node: box, start: () => new VirtualList(rows, { length: lines.length, guess: 34, make, margin: 300 }) };
}

const MARKS = { passed: "✓", failed: "✗", errored: "!", verifier_errored: "?", running: "▸", waiting: "·", unfinished: "…", "not run": "·" };
