// The rollouts of a job: sorts and filters in one pass over columns, draws only what is in sight.

const COLUMNS = [
  { name: "outcome", title: "Outcome", cell: (t, r) => badge(t.text("outcome", r)) },
  { name: "task", title: "Task", wide: true, cell: (t, r, jid) => link(`/rollout/${jid}/${t.text("rollout", r)}`, t.text("task", r)) },
  { name: "trial", title: "Trial", number: true, cell: (t, r) => amount(t.number("trial", r)) },
  { name: "reward", title: "Reward", number: true, cell: (t, r) => amount(t.number("reward", r)) },
  { name: "seconds", title: "Time", number: true, cell: (t, r) => duration(t.number("seconds", r)) },
  { name: "cost", title: "Cost", number: true, cell: (t, r) => money(t.number("cost", r)) },
  { name: "tokens", title: "Tokens", number: true, cell: (t, r) => amount(t.number("tokens", r)) },
  { name: "tools", title: "Tools", number: true, cell: (t, r) => amount(t.number("tools", r)) },
  { name: "side", title: "Arm", some: true, cell: (t, r) => t.text("side", r) },
  { name: "reason", title: "Reason and flags", wide: true, cell: (t, r) => [t.text("reason", r) || t.text("flags", r), t.text("error", r) && h("span", { class: "soft" }, ` ${t.text("error", r)}`)] },
];
const ROW = 34;

class RolloutTable {
  constructor(box, jid, table, state, changed) {
    Object.assign(this, { box, jid, table, state, changed });
    this.columns = COLUMNS.filter((c) => (c.some ? table.columns[c.name].texts.length > 1 : c.name === "cost" || c.name === "tokens" ? table.columns[c.name].some((v) => v !== null) : true));
    this.rowsBox = h("div", { role: "rowgroup", class: "rows" });
    this.told = h("span", { class: "soft", role: "status" });
    this.headRow = h("div", { role: "row", class: "tr th" });
    this.grid = h("div", { role: "table", class: "rollouts", "aria-label": "Rollouts" }, h("div", { role: "rowgroup", class: "thead" }, this.headRow), this.rowsBox);
    this.grid.style.setProperty("--columns", this.columns.map((c) => (c.wide ? "minmax(9rem, 2fr)" : c.name === "outcome" ? "8.2rem" : c.some ? "minmax(7rem, 1fr)" : "5rem")).join(" "));
    fill(box, this.tools(), this.grid);
    this.current = -1;
    this.apply();
  }

  tools() {
    const counts = {};
    const column = this.table.columns.outcome;
    for (const number of column.rows) counts[column.texts[number]] = (counts[column.texts[number]] || 0) + 1;
    this.search = h("input", { type: "search", id: "filter", placeholder: "Filter: task, rollout, reason …", "aria-label": "Filter rollouts", value: this.state.q || "", on: { input: () => this.set("q", this.search.value) } });
    this.chips = OUTCOMES.filter((name) => counts[name]).map((name) => button(`${words(name)} ${counts[name]}`, () => this.set("outcome", this.state.outcome === name ? "" : name), { class: `chip is-${known(name)}`, "data-outcome": name, "aria-pressed": "false" }));
    this.reason = h("span", {});
    return h("div", { class: "filters" }, this.search, this.chips, this.reason, h("span", { class: "grow" }), this.told);
  }

  set(name, value) {
    this.state[name] = value;
    this.apply();
    this.changed(this.state);
  }

  // New data: what was chosen stays.
  update(table) {
    this.table = table;
    const text = this.search.value;
    const had = document.activeElement === this.search;
    const tools = this.tools();
    this.search.value = text;
    this.box.firstChild.replaceWith(tools);
    if (had) this.search.focus();
    this.apply();
  }

  tests() {
    const { q, outcome, reason, task } = this.state;
    const tests = [];
    if (outcome) tests.push(this.table.matching("outcome", (t) => t === outcome));
    if (reason) tests.push(this.table.matching("reason", (t) => t === reason));
    if (task) tests.push(this.table.matching("task", (t) => t === task));
    if (q) {
      const wanted = q.toLowerCase().split(/\s+/).filter(Boolean);
      for (const word of wanted) {
        const any = ["task", "name", "reason", "error", "flags", "side"].map((name) => this.table.matching(name, (t) => t.toLowerCase().includes(word)));
        tests.push((row) => any.some((test) => test(row)));
      }
    }
    return tests;
  }

  apply() {
    const tests = this.tests();
    let rows = this.table.all();
    if (tests.length) rows = rows.filter((row) => tests.every((test) => test(row)));
    const sort = this.state.sort || "";
    if (sort) rows = this.table.order(rows, sort.replace("-", ""), sort.startsWith("-"));
    this.rows = rows;
    this.told.textContent = rows.length === this.table.length ? count(rows.length, "rollout") : `${rows.length.toLocaleString("en")} of ${count(this.table.length, "rollout")}`;
    for (const chip of this.chips) chip.setAttribute("aria-pressed", String(chip.dataset.outcome === this.state.outcome));
    const limits = ["reason", "task"].filter((name) => this.state[name]);
    fill(this.reason, limits.map((name) => button(`${name}: ${this.state[name]} ✕`, () => this.set(name, ""), { class: "chip" })));
    this.drawHead(sort);
    this.drawRows();
  }

  drawHead(sort) {
    fill(this.headRow, this.columns.map((c) => {
      const here = sort.replace("-", "") === c.name;
      const way = here ? (sort.startsWith("-") ? "descending" : "ascending") : "none";
      const next = here ? (sort.startsWith("-") ? "" : `-${c.name}`) : c.name;
      return h("div", { role: "columnheader", "aria-sort": way, class: c.number ? "number" : "" },
        button([c.title, here ? (sort.startsWith("-") ? " ↓" : " ↑") : ""], () => this.set("sort", next)));
    }));
  }

  drawRows() {
    this.grid.setAttribute("aria-rowcount", this.rows.length + 1);
    if (!this.list) {
      this.list = new VirtualList(this.rowsBox, { length: this.rows.length, guess: ROW, fixed: true, margin: 300, make: (i) => this.row(i) });
    } else {
      for (const [i, element] of [...this.list.alive]) this.list.drop(i, element);
      this.list.resize(this.rows.length);
      this.list.draw();
    }
  }

  row(i) {
    const row = this.rows[i];
    return h("div", { role: "row", class: `tr${i === this.current ? " current" : ""}`, "aria-rowindex": i + 2 },
      this.columns.map((c) => h("div", { role: "cell", class: c.number ? "number" : c.wide ? "clip" : "", title: c.name === "reason" ? this.table.text("error", row) || null : null }, c.cell(this.table, row, this.jid))));
  }

  move(by) {
    if (!this.rows.length) return;
    this.current = Math.max(0, Math.min(this.rows.length - 1, this.current + by));
    const top = this.list.heights.top(this.current) + this.list.offset;
    if (top < window.scrollY + 120 || top > window.scrollY + window.innerHeight - 80) this.list.scrollTo(this.current, window.innerHeight / 2);
    this.list.remakeAll();
    const element = this.list.alive.get(this.current);
    if (element) element.querySelector("a").focus({ preventScroll: true });
  }

  dispose() {
    if (this.list) this.list.dispose();
  }
}
