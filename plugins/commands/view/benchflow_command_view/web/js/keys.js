// The keyboard.

const KEYS = [
  ["j / k", "next, previous row or step"], ["Enter", "open"], ["/", "filter or find"], ["[ / ]", "previous, next rollout of the job"],
  ["u", "one level up"], ["g", "the list of jobs"], ["o / c", "unfold, fold everything in sight"], ["s", "only what was said and done, or everything"], ["r", "raw JSON of the step"], ["t", "light, dark or as the system"], ["?", "this list"], ["Esc", "close"],
];

function showKeys() {
  openDrawer("Keys", h("dl", { class: "keys" }, KEYS.map(([key, what]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)))));
}

function onKey(event) {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) && event.target.type !== "checkbox";
  if (event.key === "Escape") { if (!closeDrawer() && typing) event.target.blur(); return; }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const page = CURRENT.page || {};
  const actions = {
    j: () => page.move && page.move(1), k: () => page.move && page.move(-1), "/": () => page.filter && page.filter(),
    "[": () => page.sibling && page.sibling(-1), "]": () => page.sibling && page.sibling(1),
    u: () => { const up = (page.crumbs || []).at(-2); if (up) location.hash = up[1]; }, g: () => { location.hash = "/jobs"; },
    o: () => page.foldAll && page.foldAll(true), c: () => page.foldAll && page.foldAll(false), s: () => page.talkOnly && page.talkOnly(),
    r: () => page.raw && page.raw(), t: nextTheme,
    "?": showKeys,
  };
  const action = actions[event.key];
  if (action) { event.preventDefault(); action(); }
}

const THEMES = ["", "light", "dark"];

function setTheme(name) {
  if (name) document.documentElement.dataset.theme = name; else delete document.documentElement.dataset.theme;
  try { localStorage.setItem("benchflow-theme", name); } catch { /* not kept where storage is off */ }
}

function nextTheme() {
  const now = document.documentElement.dataset.theme || "";
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
  setTheme(next);
  say(`theme: ${next || "as the system"}`);
}

function rememberedTheme() {
  try { return localStorage.getItem("benchflow-theme") || ""; } catch { return ""; }
}
