// What plugins add: data of a few kinds, shown as text.

function panelBlock(block) {
  if (block.is === "facts") return facts(block.facts.map(([name, value]) => [name, typeof value === "number" ? amount(value) : value]));
  if (block.is === "bars") return bars(block.bars, block.unit);
  if (block.is === "table") return plainTable(block.columns, block.rows);
  return block.fixed ? pre(block.text, "listing") : h("p", {}, block.text);
}

function plainTable(columns, rows) {
  const numeric = (i) => rows.some((row) => typeof row[i] === "number") && rows.every((row) => typeof row[i] === "number" || row[i] === null);
  return h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "table" },
    h("table", { class: "plain" },
      h("thead", {}, h("tr", {}, columns.map((name, i) => h("th", { scope: "col", class: numeric(i) ? "number" : null }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => {
        if (cell instanceof Node) return h("td", {}, cell);
        return h("td", typeof cell === "number" ? { class: "number" } : {}, typeof cell === "number" ? amount(cell) : cell === null ? "" : cell);
      }))))));
}

async function panelsInto(box, key) {
  try {
    const { panels } = await get(key, { fresh: true }); // of a run, they change with it
    fill(box, panels.map((panel) => h("section", { class: "card panel" },
      h("h2", {}, panel.title, h("span", { class: "soft owner" }, panel.owner)),
      panel.blocks.map(panelBlock))));
  } catch (error) {
    fill(box, EXPORTED ? null : h("p", { class: "problem" }, error.message));
  }
}
