// What people and models write: a few marks of Markdown become type, everything else stays as it was written. A link is
// shown as its text and its address, and leads nowhere.

const PROSE_MOST = 40000;

function prose(text, more) {
  const whole = clean(text);
  const box = h("div", { class: `prose${more ? ` ${more}` : ""}` });
  if (whole.length > PROSE_MOST) return add(box, [whole]);
  const parts = whole.split(/^[ \t]*(```|~~~)[^\n`]*\n([\s\S]*?)\n?[ \t]*\1[ \t]*$\n?/m);
  for (let i = 0; i < parts.length; i += 3) {
    if (parts[i]) add(box, proseLines(parts[i].replace(/^\n+|\n+$/g, i ? "" : "$&")));
    if (i + 2 < parts.length) add(box, [pre(parts[i + 2], "code")]);
  }
  return box;
}

function proseLines(text) {
  return text.split(/(\n)/).map((line) => {
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
