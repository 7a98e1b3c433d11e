// Model calls: the list, and one beside the step it led to.

function trafficView(doc, openCall) {
  if (!doc.traffic.length) return h("p", { class: "card" }, "No model traffic was recorded for this rollout.");
  return plainTable(["Call", "At", "Took", "Model", "Role", "Turn", "For", "In", "Out", "Status", "Step"], doc.traffic.map((call) => [
    button(`#${call.n}`, () => openCall(call.n), { class: "chip" }), duration(call.at), duration(call.seconds), call.model, call.role, call.turn ?? null, call.purpose, call.input, call.output,
    call.error ? h("span", { class: "is-failed text" }, `${call.status ?? ""} ${call.error}`) : call.status ?? null,
    has(call.step) ? link(`/rollout/${doc.job}/${doc.id}/step/${call.step}`, `#${call.step}`) : null]));
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
  return [facts([["Model", meta.provider_model || meta.request_model], ["Wire", meta.call_type], ["Took", duration((call.duration_ms || 0) / 1000)], ["Status", (call.response || {}).status_code], ["Tokens in", amount(usage.input_tokens)], ["Tokens out", amount(usage.output_tokens)], ["For", meta.call_purpose]]),
    call.error && h("p", { class: "problem" }, `${call.error.type}: ${call.error.message}`),
    h("h3", {}, "Response"), replyView(response),
    h("h3", {}, `Request${messages.length ? `: ${count(messages.length, "message")}` : ""}`),
    messages.map((message, i) => fold([h("span", { class: "who" }, message.role || message.type || "item"), " ", h("span", { class: "soft" }, partText(message).replace(/\s+/g, " ").slice(0, 120))], () => pre(partText(message), "message"), { open: i === messages.length - 1 })),
    fold("request JSON", () => pre(jsonText(request), "request")), fold("response JSON", () => pre(typeof response === "string" ? response : jsonText(response), "response"))];
}

function messagesOf(body) {
  if (!body || typeof body !== "object") return [];
  const list = [body.messages, body.input, body.contents].find(Array.isArray) || [];
  return list.filter((message) => message && typeof message === "object");
}

function partText(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(partText).filter(Boolean).join("\n");
  if (!value || typeof value !== "object") return value === undefined || value === null ? "" : String(value);
  for (const name of ["text", "thinking", "content", "parts", "output", "summary"]) if (value[name]) return partText(value[name]);
  return jsonText(value);
}

function replyView(body) {
  if (typeof body === "string") return pre(body.slice(0, 20000), "response");
  if (!body) return h("p", { class: "soft" }, "nothing was recorded");
  const choice = Array.isArray(body.choices) && body.choices[0] ? body.choices[0].message : null;
  const candidate = Array.isArray(body.candidates) && body.candidates[0] ? body.candidates[0].content : null;
  return pre(partText(choice || candidate || body.content || body.output || body), "response");
}
