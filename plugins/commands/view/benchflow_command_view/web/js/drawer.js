// A side sheet for what stands beside a step: a model call, raw JSON.

let drawerFrom = null;

function openDrawer(title, ...children) {
  const box = document.getElementById("drawer");
  if (box.hidden) drawerFrom = document.activeElement;
  const heading = h("h2", { id: "drawer-title", tabindex: "-1" }, title);
  fill(box, h("section", { role: "dialog", "aria-labelledby": "drawer-title", class: "sheet" },
    h("div", { class: "sheet-head" }, heading, button("Close", closeDrawer, { class: "chip", title: "Esc" })),
    h("div", { class: "sheet-body" }, children)));
  box.hidden = false;
  heading.focus();
}

function closeDrawer() {
  const box = document.getElementById("drawer");
  if (box.hidden) return false;
  box.hidden = true;
  box.replaceChildren();
  if (drawerFrom && drawerFrom.isConnected) drawerFrom.focus({ preventScroll: true });
  return true;
}

function jsonText(value) {
  return JSON.stringify(value, null, 2);
}

async function showJson(title, promise) {
  openDrawer(title, h("p", { class: "soft" }, "Loading …"));
  try {
    const text = jsonText(await promise);
    openDrawer(title, copyButton(text), pre(text, "JSON"));
  } catch (error) {
    openDrawer(title, h("p", { class: "problem" }, error.message));
  }
}

function copyButton(text) {
  return button("Copy", async (event) => {
    try { await navigator.clipboard.writeText(text); event.target.textContent = "Copied"; } catch { event.target.textContent = "Not allowed here"; }
  }, { class: "chip" });
}
