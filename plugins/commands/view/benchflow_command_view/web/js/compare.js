// Jobs side by side: the verdict first, then the tasks that flipped.

async function comparePage(route) {
  const names = route.parts[1];
  const inOrder = `compare/${names.split("+").sort().join("+")}`; // the one of more than two that an export holds
  const doc = await get(`compare/${names}`).catch((error) => (EXPORTED ? get(inOrder) : Promise.reject(error)));
  const title = doc.sides.map((side) => side.name).join(" / ");
  const box = h("div", {});
  let only = "changed";
  const draw = () => fill(box, tasksTable(doc, only));
  const counts = {};
  for (const task of doc.tasks) counts[task.change] = (counts[task.change] || 0) + 1;
  const filter = (name, label) => button(label, (e) => { only = name; for (const b of e.target.parentElement.querySelectorAll("[aria-pressed]")) b.setAttribute("aria-pressed", String(b === e.target)); draw(); }, { class: "chip", "aria-pressed": String(name === only) });
  draw();
  return {
    title: `Compare ${title}`, crumbs: [["Jobs", "/jobs"], ["Compare", `/compare/${names}`]],
    node: h("div", { class: "page" }, h("div", { class: "page-head" }, h("h1", {}, "Compare"), h("span", { class: "grow" }), button("JSON", () => showJson("Comparison", Promise.resolve(doc)), { class: "chip quiet" })),
      doc.problem && h("p", { class: "card problem" }, doc.problem),
      h("div", { class: "sides" }, doc.sides.map((side, i) => h("section", { class: "card" }, h("h2", {}, i === 0 ? h("span", { class: "soft" }, "base ") : null, link(`/job/${side.job}`, side.name)), h("div", { class: "value" }, has(side.score) && side.scored ? percent(side.score) : "–"), h("div", { class: "soft" }, `${side.scored} of ${side.total} scored`)))),
      doc.comparisons.map(verdictCard),
      h("div", { class: "filters" }, filter("changed", `changed ${(counts.flipped || 0) + (counts.moved || 0)}`), filter("flipped", `flipped ${counts.flipped || 0}`), filter("missing", `not in all ${counts.missing || 0}`), filter("all", `all ${doc.tasks.length}`)),
      box),
  };
}

function verdictCard(one) {
  const other = one.different.filter((d) => !d.treatment);
  return h("section", { class: `card verdict outcome-${/^[a-z-]+$/.test(one.outcome) ? one.outcome : "undecided"}` },
    h("h2", {}, `${one.other} against ${one.base}: ${one.outcome.replace("-", " ")}`), h("p", {}, one.verdict),
    facts([["Difference", `${one.difference >= 0 ? "+" : ""}${(one.difference * 100).toFixed(1)} points`], ["95 % interval", one.interval ? `${(one.interval[0] * 100).toFixed(1)} to ${(one.interval[1] * 100).toFixed(1)}` : "–"],
      ["p", amount(one.p_value)], ["Tasks paired", one.tasks], ["Better / worse", `${one.better} / ${one.worse}`], ["Detectable", has(one.detectable) ? `${(one.detectable * 100).toFixed(1)} points` : "–"]]),
    one.different.length > 0 && fold(`${count(one.different.length, "setting")} ${one.different.length === 1 ? "differs" : "differ"}${other.length ? `, ${other.length} of them not what is compared` : ""}`, () => plainTable(["Setting", "Base", "Other"], one.different.map((d) => [d.field, d.base.join(", "), d.other.join(", ")]))),
    one.unpaired.length > 0 && fold(`${count(one.unpaired.length, "task")} could not be paired`, () => plainTable(["Task", "Why"], one.unpaired.map((u) => [u.task, u.reason]))));
}

function tasksTable(doc, only) {
  const wanted = { changed: (t) => t.change === "flipped" || t.change === "moved", flipped: (t) => t.change === "flipped", missing: (t) => t.change === "missing", all: () => true }[only];
  const shown = doc.tasks.filter(wanted);
  if (!shown.length) return h("p", { class: "card" }, only === "changed" ? "No task changed." : "There is none.");
  const rows = shown.slice(0, 2000).map((task) => [h("span", { class: `change is-${task.change}${task.change === "flipped" && task.by > 0 ? " up" : ""}` }, task.change === "flipped" ? (task.by > 0 ? "now solved" : "no longer solved") : task.change), task.task, ...task.cells.map((cell, i) => compareCell(cell, doc.sides[i].job))]);
  return [h("div", { class: "card flush" }, plainTable(["Change", "Task", ...doc.sides.map((side) => side.name)], rows)), shown.length > 2000 && h("p", { class: "soft" }, `and ${shown.length - 2000} more`)];
}

function compareCell(cell, jid) {
  if (!cell.rollouts.length) return h("span", { class: "soft" }, "not run");
  return h("span", { class: "compare-cell" }, h("span", { class: "number" }, cell.scored ? `${cell.passed}/${cell.scored}` : "unscored"),
    h("span", { class: "cells" }, cell.rollouts.slice(0, 12).map(([rid, outcome]) => h("a", { to: `/rollout/${jid}/${rid}`, class: `cell is-${known(outcome)}`, "aria-label": `${words(outcome)} rollout ${rid}` }, MARKS[outcome] || "·"))));
}
