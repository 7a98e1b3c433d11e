// The conversation: one item per step, fetched page by page, a bounded number of pages kept.

const PAGES_KEPT = 30;
const LABELS = { prompt: "prompt", message: "says", thought: "thinks", plan: "plan", error: "error", notice: "note", reward: "reward", outbox: "message", question: "asks", system: "", other: "", turn_end: "turn ends" };

const SPOKEN = new Set(["prompt", "message", "outbox", "notice"]);
const BOOKKEEPING = new Set(["system", "other", "phase", "turn_end"]);
let talkOnly = false; // kept from one rollout to the next

class StepsView {
  // `several`: of roles or scenes, so that each step says whose it is.
  constructor(box, { where, count: length, page, openCall, several = false }) {
    Object.assign(this, { box, where, page, openCall, several });
    this.pages = new Map();
    this.memory = new Map();
    this.current = -1;
    box.classList.toggle("talk-only", talkOnly);
    this.list = new VirtualList(box, { length, guess: 88, make: (i) => this.item(i) });
  }

  // Without what the program keeps for itself: prompts, answers, thoughts, tools, notes, errors and rewards stay.
  showTalkOnly(on) {
    talkOnly = on;
    this.box.classList.toggle("talk-only", on);
    this.list.plan();
  }

  load(number, fresh) {
    if (this.pages.has(number) && !fresh) return this.pages.get(number);
    const entry = { steps: null };
    const before = this.pages.get(number);
    if (before && before.steps) entry.steps = before.steps;
    this.pages.delete(number);
    this.pages.set(number, entry);
    if (this.pages.size > PAGES_KEPT) this.pages.delete(this.pages.keys().next().value);
    const key = `steps/${this.where}/${number}`;
    forget(key);
    entry.promise = get(key).then((found) => {
      CACHE.delete(key); // the pages kept here are bounded; the cache would keep them twice
      entry.steps = found.steps;
      for (let i = number * this.page; i < (number + 1) * this.page; i += 1) this.list.remake(i);
      return found.steps;
    }).catch((error) => {
      entry.problem = error.message;
      setTimeout(() => { if (this.pages.get(number) === entry) this.pages.delete(number); }, 3000); // then it is tried again
      for (let i = number * this.page; i < (number + 1) * this.page; i += 1) this.list.remake(i);
      return [];
    });
    return entry;
  }

  item(index) {
    const entry = this.load(Math.floor(index / this.page));
    const step = entry.steps && entry.steps[index % this.page];
    const length = this.list ? this.list.length : -1;
    const place = { tabindex: "-1", "aria-posinset": index + 1, "aria-setsize": length, "aria-label": `step ${index}` };
    if (!step) return h("article", { class: "step empty", ...place }, entry.problem || "…");
    const body = stepBody(step, this);
    const kind = /^[a-z_]+$/.test(step.type) ? step.type : "other";
    return h("article", { class: `step type-${kind}${index === this.current ? " current" : ""}`, ...place, on: { focusin: () => this.mark(index) } },
      stepHead(step, this), body);
  }

  mark(index) {
    if (index === this.current) return;
    const before = this.list.alive.get(this.current);
    if (before) before.classList.remove("current");
    this.current = index;
    const now = this.list.alive.get(index);
    if (now) now.classList.add("current");
  }

  async goTo(index, { focus = true } = {}) {
    const wanted = Math.max(0, Math.min(index, this.list.length - 1));
    const entry = this.load(Math.floor(wanted / this.page));
    this.list.scrollTo(wanted);
    await entry.promise;
    this.list.scrollTo(wanted);
    this.mark(wanted);
    const element = this.list.alive.get(wanted);
    if (focus && element) element.focus({ preventScroll: true });
  }

  async move(by) {
    let index = this.current;
    if (index < 0) index = this.list.heights.at(Math.max(0, window.scrollY - this.list.offset + 130)) - (by > 0 ? 1 : 0);
    return this.goTo(talkOnly ? await this.spoken(index + by, by) : index + by);
  }

  // The next step that is shown, from an index on.
  async spoken(from, by) {
    for (let i = from; i >= 0 && i < this.list.length; i += by) {
      const entry = this.load(Math.floor(i / this.page));
      const step = (entry.steps || (await entry.promise))[i % this.page];
      if (step && !BOOKKEEPING.has(step.type)) return i;
    }
    return from - by;
  }

  // From the current step on, page by page, around once.
  async find(text, down = true) {
    const wanted = text.toLowerCase();
    const total = this.list.length;
    const pages = Math.ceil(total / this.page);
    const search = (this.search = {});
    for (let n = 0; n <= pages; n += 1) {
      const base = Math.max(this.current, 0);
      const start = Math.floor(base / this.page);
      const number = (((start + (down ? n : -n)) % pages) + pages) % pages;
      const entry = this.load(number);
      const steps = entry.steps || (await entry.promise);
      if (this.search !== search) return null;
      const ordered = down ? steps : [...steps].reverse();
      for (const step of ordered) {
        if (n === 0 && (down ? step.n <= this.current : step.n >= this.current)) continue;
        const hit = await this.holds(step, wanted);
        if (this.search !== search) return null;
        if (hit) { await this.goTo(step.n, { focus: false }); return step.n; }
      }
    }
    return null;
  }

  // What the page cut off is looked through too; an export has only what it shows.
  async holds(step, wanted) {
    if (wordsOf(step).toLowerCase().includes(wanted)) return true;
    const whole = step.cut && (await get(`step/${this.where}/${step.n}`).catch(() => null));
    return Boolean(whole) && wordsOf(whole).toLowerCase().includes(wanted);
  }

  // The log grew, or steps from `low` on changed.
  grow(length, low) {
    const atEnd = window.scrollY + window.innerHeight > document.documentElement.scrollHeight - 160;
    for (const number of [...this.pages.keys()]) if ((number + 1) * this.page > low) this.load(number, true);
    this.list.resize(length);
    if (atEnd && length) this.list.scrollTo(length - 1, window.innerHeight - 220);
  }

  foldAll(open) {
    for (const details of this.box.querySelectorAll("details")) details.open = open;
  }

  dispose() {
    this.list.dispose();
  }
}

// Everything of a step that is on the page.
function wordsOf(step) {
  const blocks = (step.blocks || []).map((b) => b.text || [b.path, ...(b.lines || []).map(([, line]) => line)].join("\n"));
  const plan = (step.entries || []).map((e) => e.content);
  return [step.title, step.text, step.kind, step.status, step.role, step.input, step.printed ?? step.output, step.data, ...blocks, ...plan].filter(Boolean).join("\n");
}

function stepHead(step, view) {
  const begins = step.type === "prompt" && step.turn !== undefined;
  const who = begins ? [step.scene, step.role].filter(Boolean).join(" · ") : view.several && step.role;
  const took = has(step.end) && step.end > step.at && step.type !== "message" && step.type !== "thought" ? duration(step.end - step.at) : "";
  return h("div", { class: "head" },
    begins && h("span", { class: "turn" }, `turn ${step.turn}`),
    who && h("span", { class: "who" }, who),
    h("span", { class: "label" }, step.type === "tool" ? step.kind : LABELS[step.type] ?? step.type.replaceAll("_", " ")),
    step.type === "tool" && h("span", { class: `status is-${toolState(step.status)}` }, step.status.replaceAll("_", " ")),
    has(step.exit) && step.exit !== 0 && h("span", { class: "status is-failed" }, `exit code ${step.exit}`),
    took && h("span", { class: "took" }, took),
    h("span", { class: "grow" }),
    (step.calls || []).map((n) => button(`model call ${n}`, () => view.openCall(n), { class: "chip" })),
    h("span", { class: "at", title: step.time || "" }, `+${duration(step.at) || "0 s"}`),
    button("JSON", () => showJson(`Step ${step.n}`, get(`step/${view.where}/${step.n}`).catch(() => step)), { class: "chip quiet", "aria-label": `JSON of step ${step.n}` }),
    h("a", { to: `/rollout/${view.where}/step/${step.n}`, class: "chip quiet", "aria-label": `link to step ${step.n}` }, `#${step.n}`));
}

function toolState(status) {
  return { completed: "passed", failed: "failed", in_progress: "running", pending: "waiting", cancelled: "errored" }[status] || "other";
}

function stepBody(step, view) {
  const name = (part) => ({ memory: view.memory, name: `${step.n}:${part}` });
  const parts = [];
  if (step.type === "tool") parts.push(...toolBody(step, name));
  else if (step.type === "thought") {
    const first = clean(step.text || "").split("\n", 1)[0].slice(0, 110);
    parts.push(fold([h("span", { class: "soft" }, first || "thought")], () => prose(step.text || "", "thought"), name("thought")));
  } else if (step.type === "plan") {
    parts.push(h("ul", { class: "plan" }, (step.entries || []).map((e) => h("li", { class: e.status === "completed" ? "done" : "" }, e.content, h("span", { class: "soft" }, ` ${String(e.status || "").replaceAll("_", " ")}`)))));
  } else if (step.type === "phase") {
    parts.push(h("span", { class: "title" }, step.title.replaceAll("_", " ")), step.status === "failed" && [" ", badge("failed")]);
  } else if (step.type === "question") {
    parts.push(prose(step.text || ""), step.answer && h("div", { class: "permission" }, "answer ", h("strong", {}, step.answer)));
  } else if (step.data && !step.text && BOOKKEEPING.has(step.type)) {
    return h("div", { class: "body" }, fold(h("span", { class: "title" }, step.title), () => [pre(step.data, "details"), wholeButton(step, view)], name("data")));
  } else {
    if (step.title) parts.push(h("span", { class: "title" }, step.title));
    if (step.text) parts.push(SPOKEN.has(step.type) ? prose(step.text) : h("div", { class: "prose" }, step.text));
  }
  if (step.data) parts.push(fold("details", () => pre(step.data, "details"), name("data")));
  parts.push(wholeButton(step, view));
  return h("div", { class: "body" }, parts);
}

function wholeButton(step, view) {
  if (!step.cut) return null;
  return button(`Show all: ${step.cut.toLocaleString("en")} more characters`, (event) => showWhole(event, step, view), { class: "more" });
}

function toolBody(step, name) {
  const parts = [h("div", { class: "title mono" }, step.title || step.call)];
  const blocks = step.blocks || [];
  const shown = blocks.map((block) => {
    if (block.is === "diff") return diffView(block);
    if (block.is === "image") return picture(`data:${block.mime};base64,${block.data}`, "picture from a tool");
    return block.text ? pre(block.text, "output of the tool") : null;
  });
  if (step.input && step.input !== "{}") parts.push(argumentsView(step, name));
  parts.push(...shown);
  if (step.printed !== undefined) {
    if (step.printed) parts.push(pre(step.printed, "what it printed"));
  } else if (step.output) {
    const repeated = blocks.some((block) => block.is === "text" && block.text && step.output.includes(JSON.stringify(block.text.trimEnd()).slice(1, -1)));
    parts.push(fold("output", () => pre(step.output, "raw output"), { ...name("output"), open: !repeated && !shown.length && step.output.length < 3000 }));
  }
  const places = (Array.isArray(step.locations) ? step.locations : []).filter((l) => l && l.path && !blocks.some((block) => block.path === l.path) && !(step.title || "").includes(l.path));
  if (places.length) parts.push(h("div", { class: "soft mono" }, places.map((l) => [l.path, l.line].filter((v) => v !== undefined && v !== null).join(":")).join("  ")));
  if (step.permission) parts.push(h("div", { class: "permission" }, permissionText(step.permission)));
  return parts;
}

// Short ones stand there; of long ones the beginning, and the rest when asked. The command itself is often the title.
function argumentsView(step, name) {
  let given = null;
  try { given = JSON.parse(step.input); } catch { /* cut, or not JSON */ }
  const plain = given && typeof given === "object" && !Array.isArray(given) ? Object.entries(given) : null;
  const command = (plain || []).find(([key, value]) => key === "command" && typeof value === "string" && value.length < 2000);
  const titled = command && command[1].trim() === (step.title || "").trim();
  const told = plain ? plain.filter((one) => one !== command).map(([key, value]) => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ") : step.input;
  const short = clean(told).replace(/\s+/g, " ");
  return [command && !titled && h("pre", { class: "command", tabindex: "0", role: "group", "aria-label": "command" }, command[1]),
    fold(["arguments ", h("span", { class: "mono preview" }, short.length > 140 ? `${short.slice(0, 140)} …` : short)], () => pre(step.input, "arguments"), name("input"))];
}

function permissionText(permission) {
  const kind = { allow_once: "allowed once", allow_always: "allowed for good", reject_once: "refused once", reject_always: "refused for good" }[permission.kind];
  const option = permission.name || permission.optionId;
  return ["permission ", h("strong", {}, kind || permission.outcome || JSON.stringify(permission)), option ? `: ${option}` : ""];
}

async function showWhole(event, step, view) {
  const box = event.target.closest(".body");
  event.target.disabled = true;
  try {
    const whole = await get(`step/${view.where}/${step.n}`);
    const more = stepBody({ ...whole, cut: 0 }, view);
    more.classList.add("whole");
    if (whole.cut) add(more, [h("p", { class: "soft" }, `${whole.cut.toLocaleString("en")} characters are too many for a page: see the file.`)]);
    box.replaceWith(more);
  } catch (error) {
    event.target.textContent = error.message;
  }
}
