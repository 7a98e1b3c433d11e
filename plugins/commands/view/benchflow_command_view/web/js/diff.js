// The change of a file, line by line, as the server worked it out.

function diffView(block) {
  const names = { "-": "gone", "+": "new", " ": "same", "…": "left-out" };
  return h("div", { class: "diff" }, h("div", { class: "path" }, block.path),
    h("pre", { tabindex: "0", role: "group", "aria-label": `change of ${block.path}` },
      block.lines.map(([op, text]) => h("span", { class: `line ${names[op] || "same"}` }, `${op} ${text}\n`))));
}
