// Everything on the page is made here. Text becomes a text node, never markup; there is no way to set a script, a style
// or an address from data: links lead to places on this page only.

const SVG_NS = "http://www.w3.org/2000/svg";
const FORBIDDEN = /^(on|href|src|style|srcdoc|action|formaction|xlink)/i;

// Characters that would hide or reorder what stands around them are shown as what they are; colours of a terminal go.
const COLOURS = /\u001b\[[0-9;:]*m/g;
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e01ef}]/gu;
const HEAPED = /(\p{M}{8})\p{M}+/gu; // marks on marks would cover the lines around them

function clean(text) {
  return String(text).replace(/\r\n/g, "\n").replace(COLOURS, "").replace(UNSEEN, (c) => {
    const code = c.codePointAt(0);
    if (code === 13) return "␍";
    return code < 32 ? String.fromCodePoint(0x2400 + code) : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  }).replace(HEAPED, "$1⟨…⟩");
}

function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(clean(child)));
  }
  return node;
}

function dress(node, props) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    } else if (name === "to") {
      node.setAttribute("href", `#${value}`);
    } else if (name === "css") {
      for (const [property, setting] of Object.entries(value)) node.style.setProperty(property, setting);
    } else if (FORBIDDEN.test(name)) {
      throw new Error(`the attribute ${name} is not set from here`);
    } else {
      node.setAttribute(name, value === true ? "" : clean(value));
    }
  }
  return node;
}

function h(tag, props, ...children) {
  return add(dress(document.createElement(tag), props), children);
}

function svg(tag, props, ...children) {
  return add(dress(document.createElementNS(SVG_NS, tag), props), children);
}

function picture(source, alt) {
  if (!/^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]*$/.test(source)) return h("p", { class: "soft" }, "[a picture of another kind]");
  const image = h("img", { alt, class: "picture" });
  image.src = source;
  return image;
}

function fill(node, ...children) {
  node.replaceChildren();
  return add(node, children);
}

function button(label, action, props) {
  return h("button", { type: "button", ...props, on: { click: action } }, label);
}

function link(to, ...children) {
  return h("a", { to }, ...children);
}

function badge(outcome) {
  return h("span", { class: `badge is-${known(outcome)}` }, words(outcome));
}

const OUTCOMES = ["passed", "failed", "errored", "verifier_errored", "running", "waiting", "unfinished", "not run"];

function known(outcome) {
  return OUTCOMES.includes(outcome) ? outcome.replace("_", "-").replace(" ", "-") : "other";
}

function words(outcome) {
  return { errored: "unscored", verifier_errored: "verifier error" }[outcome] || outcome;
}

function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h("dl", { class: "facts" }, shown.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

// A thing that opens and closes, and remembers it while the page lives.
function fold(summary, make, { open = false, memory = null, name = "" } = {}) {
  const wanted = memory && memory.has(name) ? memory.get(name) : open;
  const box = h("details", { class: "fold" }, h("summary", {}, summary));
  let made = false;
  const body = () => {
    if (!made) { made = true; add(box, [make()]); }
  };
  if (wanted) { box.open = true; body(); }
  box.addEventListener("toggle", () => {
    if (box.open) body();
    if (memory) memory.set(name, box.open);
  });
  return box;
}

function pre(text, label) {
  return h("pre", { tabindex: "0", "aria-label": label || "output", role: "group" }, text);
}

function say(text) {
  document.getElementById("said").textContent = clean(text);
}
