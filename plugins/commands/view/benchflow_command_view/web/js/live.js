// What changes while one looks. The server says that something changed; the page fetches what it shows.

function live(where, told) {
  if (EXPORTED) return () => {};
  const source = new EventSource(where ? `live/${where}` : "live");
  let first = !where;
  source.addEventListener("message", (event) => {
    if (first) { first = false; return; } // the list was fetched a moment ago
    told(JSON.parse(event.data));
  });
  const stop = () => source.close();
  window.addEventListener("pagehide", stop, { once: true });
  return stop;
}

// At most once in a while; the last wish is never lost.
function pace(action, every) {
  let busy = false;
  let again = false;
  const run = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try { await action(); } catch (error) { say(error.message); }
    setTimeout(() => { busy = false; if (again) { again = false; run(); } }, every);
  };
  return run;
}

const WAITS = { tool: "a tool", model: "the model", verifier: "the verifier", sandbox: "the sandbox", agent: "the agent", user: "the user" };

function waitingText(waits) {
  const since = Math.max(0, Date.now() / 1000 - waits.since);
  const others = waits.others > 0 ? ` and ${waits.others} more` : "";
  return [waits.who && h("span", {}, `${waits.who} on `), h("strong", {}, WAITS[waits.on] || waits.on), ": ", h("span", { class: "mono" }, waits.what), others, h("span", { class: "soft" }, ` for ${duration(since)}`),
    (waits.also || []).map((one) => [h("br", {}), waitingText(one)])];
}

function waitingLine(waits) {
  return h("p", { class: "card waiting" }, badge("running"), waits.who ? " waiting: " : " waiting on ", waitingText(waits));
}

function drawLive(box, told, jid) {
  if (!told.running) { fill(box); return; }
  const rows = told.rollouts || [];
  fill(box, h("section", { class: "card live", "aria-label": "Running now" },
    h("h2", {}, `Running ${rows.length}`, h("span", { class: "soft" }, ` ${[has(told.left) && `${told.left} to go`, told.tokens && `${amount(told.tokens)} tokens`, told.cost_usd && money(told.cost_usd)].filter(Boolean).join(" · ")}`)),
    told.stopping && h("p", { class: "problem" }, `${told.stopping}: nothing new starts.`),
    rows.length > 0 && plainTable(["Task", "Phase", "Turn", "Tools", "Time", "Waiting"], rows.map((row) => [
      link(`/rollout/${jid}/${safeId(row.rollout)}`, `${row.task}${row.arm ? ` [${row.arm}]` : ""}`), row.phase, row.turn || "", row.tool_calls || "", duration(row.seconds), h("span", {}, waitingText(row.waits))]))));
}

function safeId(name) {
  const plain = String(name).replace(/[^A-Za-z0-9._-]/g, "~");
  return /[^.]/.test(plain) ? plain : `~${plain}`;
}
