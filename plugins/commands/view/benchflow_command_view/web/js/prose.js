// What people and models write: a few marks of Markdown become type, everything else stays as it was written. A link is
// shown as its text and its address, and leads nowhere.

const PROSE_MOST = 40000;

function prose(text, more) {
  const whole = clean(text);
  const box = h("div", { class: `prose${more ? ` ${more}` : ""}` });
  if (whole.length > PROSE_MOST) return add(box, [whole]);
  let held = [];
  let fence = null;
  const flush = () => {
    if (fence) add(box, [pre(held.join("\n"), "code")]);
    else if (held.length) add(box, proseLines(held));
    held = [];
  };
  for (const line of whole.split("\n")) { // once over the lines, whatever they hold
    const mark = /^ *(```|~~~)/.exec(line);
    if (fence ? line.trim() === fence : mark) {
      flush();
      fence = fence ? null : mark[1];
    } else held.push(line);
  }
  flush();
  return box;
}

// Empty lines beside code would stand beside its own margin.
function proseLines(lines) {
  return lines.join("\n").replace(/\n+$/, "").split(/(\n)/).map((line) => {
    const title = /^(#{1,6}) +(.+)$/.exec(line);
    return title ? h("strong", { class: "heading" }, proseInline(title[2])) : proseInline(line);
  });
}

function proseInline(line) {
  return line.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/).map((part) => {
    if (part.length > 2 && part.startsWith("`")) return h("code", {}, part.slice(1, -1));
    if (part.length > 4 && part.startsWith("**")) return h("strong", {}, part.slice(2, -2));
    return part;
  });
}
