// Model calls: the list, and one beside the step it led to.

function trafficView(doc, openCall) {
  if (!doc.traffic.length) return h("p", { class: "card" }, "No model traffic was recorded for this rollout.");
  return h("div", { class: "card flush" }, plainTable(["Call", "At", "Took", "Model", "Role", "Turn", "For", "In", "Cached", "Out", "Cost", "Status", "Step"], doc.traffic.map((call) => [
    button(`#${call.n}`, () => openCall(call.n), { class: "chip" }), duration(call.at), duration(call.seconds), call.model, call.role, call.turn ?? null, call.purpose, call.input, call.cached, call.output, h("span", { class: "number" }, money(call.cost)),
    call.error ? h("span", { class: "is-failed text" }, `${call.status ?? ""} ${call.error}`) : call.status ?? null,
    has(call.step) ? link(`/rollout/${doc.job}/${doc.id}/step/${call.step}`, `#${call.step}`) : null])));
}

async function showCall(where, number) {
  const title = `Model call ${number}`;
  openDrawer(title, h("p", { class: "soft" }, "Loading …"));
  try {
    const call = await get(`traffic/${where}/${number}`);
    CACHE.delete(`traffic/${where}/${number}`);
    openDrawer(title, callBody(call));
  } catch (error) {
    openDrawer(title, h("p", { class: "problem" }, error.message));
  }
}

function callBody(call) {
  if (call.too_large) return h("p", {}, "This exchange is too large to show here: see trajectory/llm_trajectory.jsonl.");
  const meta = call.metadata || {};
  const usage = call.usage || {};
  const request = (call.request || {}).body;
  const response = (call.response || {}).body;
  const messages = messagesOf(request);
  const tools = toolNames(request);
  return [facts([["Model", meta.provider_model || meta.request_model], ["Wire", meta.call_type], ["Took", duration((call.duration_ms || 0) / 1000)], ["Status", (call.response || {}).status_code], ["Tokens in", amount(usage.input_tokens)], ["Cached", amount(usage.cache_read_tokens)], ["Tokens out", amount(usage.output_tokens)], ["Cost", money(usage.cost_usd)], ["For", meta.call_purpose]]),
    call.error && h("p", { class: "problem" }, `${call.error.type}: ${call.error.message}`),
    h("h3", {}, "Response"), replyView(response),
    h("h3", {}, `Request${messages.length ? `: ${count(messages.length, "message")}` : ""}`),
    messages.map((message, i) => fold([h("span", { class: "who" }, message.role || message.type || "item"), " ", h("span", { class: "soft" }, partText(message).replace(/\s+/g, " ").slice(0, 120))], () => pre(partText(message), "message"), { open: i === messages.length - 1 })),
    tools.length > 0 && fold([`${count(tools.length, "tool")} offered `, h("span", { class: "soft" }, tools.slice(0, 12).join(", "))], () => pre(jsonText(request.tools), "tools")),
    fold("request JSON", () => pre(jsonText(request), "request")), fold("response JSON", () => pre(typeof response === "string" ? response : jsonText(response), "response"))];
}

function messagesOf(body) {
  if (!body || typeof body !== "object") return [];
  const list = [body.messages, body.input, body.contents].find(Array.isArray) || (typeof body.input === "string" ? [{ role: "user", content: body.input }] : []);
  const system = body.system || body.instructions || body.systemInstruction || body.system_instruction;
  return [system && { role: "system", content: system }, ...list].filter((message) => message && typeof message === "object");
}

function toolNames(body) {
  const tools = body && Array.isArray(body.tools) ? body.tools : [];
  return tools.flatMap((tool) => (Array.isArray(tool.functionDeclarations) ? tool.functionDeclarations : [tool])).map((tool) => tool.name || (tool.function || {}).name || tool.type || "?");
}

// A tool call as name and arguments, in whichever of the wires' shapes.
function callText(value) {
  const asked = value.functionCall || value.function || (/^(tool_use|function_call|custom_tool_call)$/.test(value.type) ? value : null);
  if (!asked || !asked.name) return null;
  const given = asked.input ?? asked.arguments ?? asked.args ?? {};
  return `→ ${asked.name} ${typeof given === "string" ? given : JSON.stringify(given)}`;
}

function partText(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(partText).filter(Boolean).join("\n");
  if (!value || typeof value !== "object") return value === undefined || value === null ? "" : String(value);
  const asked = callText(value);
  if (asked) return asked;
  const parts = ["reasoning_content", "text", "thinking", "content", "parts", "output", "summary", "tool_calls", "functionResponse"].filter((name) => value[name] && value[name].length !== 0).map((name) => partText(value[name]));
  return parts.length ? parts.filter(Boolean).join("\n") : jsonText(value);
}

function replyView(body) {
  if (typeof body === "string") return pre(body.slice(0, 20000), "response");
  if (!body) return h("p", { class: "soft" }, "nothing was recorded");
  const choice = Array.isArray(body.choices) && body.choices[0] ? body.choices[0].message : null;
  const candidate = Array.isArray(body.candidates) && body.candidates[0] ? body.candidates[0].content : null;
  return pre(partText(choice || candidate || body.content || body.output || body), "response");
}
