// An ACP agent on standard input and output that lets acpx do the work: acpx is a client, and BenchFlow wants an agent.
//
// One acpx session per ACP session. acpx prints the messages it exchanges with the agent behind it, in both directions:
// updates are passed on as they come, permission requests (which acpx answers by its policy) as notifications.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";

const settings = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const program = path.join(import.meta.dirname, "node_modules/acpx");
const version = JSON.parse(fs.readFileSync(path.join(program, "package.json"), "utf8")).version;
const state = path.join(os.homedir(), ".acpx");
const sessions = new Map();

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const notify = (method, params) => send({ method, params });

class Refused extends Error {
  constructor(error) {
    super(error.message);
    this.error = error;
  }
}

// Runs acpx and hands each message it prints to `heard`. Gives its exit code and the end of what it complained about.
function acpx(session, args, { input = "", heard = () => {}, started = () => {} } = {}) {
  const given = ["--agent", settings.agent, "--cwd", session.cwd, "--format", "json", "--json-strict"];
  given.push("--no-fs", "--no-terminal", settings.permissions, "--ttl", "0", ...session.options, ...args);
  const child = spawn(process.execPath, [path.join(program, "dist/cli.js"), ...given], { cwd: session.cwd });
  started(child);
  let complaint = "";
  child.stderr.on("data", (data) => (complaint = (complaint + data).slice(-2000)));
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  const lines = readline.createInterface({ input: child.stdout });
  lines.on("line", (line) => {
    try {
      const message = JSON.parse(line);
      if (message && typeof message === "object") heard(message);
    } catch {
      complaint = (complaint + line).slice(-2000);
    }
  });
  const read = new Promise((resolve) => lines.on("close", resolve));
  const ended = new Promise((resolve, reject) => child.on("close", resolve).on("error", reject));
  return Promise.all([ended, read]).then(([code]) => ({ code, complaint: complaint.trim() }));
}

// A command of acpx that answers with one message, for what is not a prompt.
async function tell(session, args) {
  let answer = null;
  const { code, complaint } = await acpx(session, args, { heard: (message) => (answer = message) });
  if (answer?.error) throw new Refused(answer.error);
  if (code !== 0 || !answer) throw new Refused({ code: -32603, message: complaint || `acpx ended with ${code}` });
  return answer;
}

async function newSession({ cwd, mcpServers = [] }) {
  const session = { name: randomUUID(), cwd, options: [], running: null, last: null };
  if (mcpServers.length) {
    const file = path.join(os.homedir(), `.benchflow-acpx-mcp-${session.name}.json`);
    fs.writeFileSync(file, JSON.stringify({ mcpServers }), { mode: 0o600 });
    session.options = ["--mcp-config", file];
  }
  const made = await tell(session, ["sessions", "new", "--name", session.name]);
  session.record = made.acpxRecordId;
  sessions.set(session.name, session);
  const known = JSON.parse(fs.readFileSync(path.join(state, "sessions", `${session.record}.json`), "utf8")).acpx ?? {};
  const models = (known.available_models ?? []).map((modelId) => ({ modelId, name: modelId }));
  return {
    sessionId: session.name,
    configOptions: known.config_options ?? [],
    ...(models.length ? { models: { availableModels: models, currentModelId: known.current_model_id } } : {}),
  };
}

// A cancelled prompt is answered at once: acpx needs another program to pass it on. The next one waits for its end.
async function prompt({ sessionId, prompt: blocks }) {
  const session = find(sessionId);
  await session.last;
  const cancelled = new Promise((resolve) => (session.cancel = () => resolve({ stopReason: "cancelled" })));
  const turn = work(session, blocks.map((block) => block.text ?? block.resource?.text ?? block.uri ?? "").join("\n"));
  session.last = turn.catch(() => {}).then(() => (session.running = null));
  return Promise.race([turn, cancelled]);
}

async function work(session, input) {
  const asked = new Map();
  let promptId = null;
  let answer = null;
  const heard = (message) => {
    if (message.method === "session/prompt") promptId = message.id;
    else if (message.method === "session/update") {
      // What comes before the prompt is an old conversation, replayed.
      if (promptId !== null) notify("session/update", { ...message.params, sessionId: session.name });
    } else if (message.method === "session/request_permission") asked.set(message.id, message.params);
    else if (message.result?.outcome && asked.has(message.id)) {
      notify("_acpx/permission", { ...asked.get(message.id), sessionId: session.name, outcome: message.result.outcome });
      asked.delete(message.id);
    } else if (message.result?.stopReason) answer = message;
    else if (message.error && (message.id === null || message.id === promptId)) answer = message;
  };
  const started = (child) => (session.running = child);
  const { code, complaint } = await acpx(session, ["prompt", "-s", session.name, "-f", "-"], { input, heard, started });
  if (answer?.result) return answer.result;
  throw new Refused(answer?.error ?? { code: -32603, message: complaint || `acpx ended with ${code}` });
}

// A signal would end acpx and leave the agent at work.
async function cancel({ sessionId }) {
  const session = sessions.get(sessionId);
  if (!session?.running) return;
  session.cancel();
  await tell(session, ["cancel", "-s", session.name]);
}

function find(sessionId) {
  const session = sessions.get(sessionId);
  if (!session) throw new Refused({ code: -32602, message: `no session ${sessionId}` });
  return session;
}

// acpx keeps the agent in a process of its own that outlives us: it ends with us.
function close() {
  for (const session of sessions.values()) {
    session.running?.kill("SIGKILL");
    for (const name of fs.existsSync(path.join(state, "queues")) ? fs.readdirSync(path.join(state, "queues")) : []) {
      try {
        const owner = JSON.parse(fs.readFileSync(path.join(state, "queues", name), "utf8"));
        if (owner.sessionId !== session.record) continue;
        const agent = JSON.parse(fs.readFileSync(path.join(state, "sessions", `${session.record}.json`), "utf8")).pid;
        process.kill(owner.pid, "SIGKILL");
        process.kill(agent, "SIGKILL");
      } catch {
        // It is gone already.
      }
    }
  }
  process.exit(0);
}

const methods = {
  initialize: async () => ({
    protocolVersion: 1,
    agentInfo: { name: "acpx", version },
    agentCapabilities: { mcpCapabilities: { http: true, sse: true }, promptCapabilities: { embeddedContext: true } },
    authMethods: [],
  }),
  "session/new": newSession,
  "session/prompt": prompt,
  "session/cancel": cancel,
  "session/set_mode": async (p) => {
    await tell(find(p.sessionId), ["set-mode", "-s", p.sessionId, p.modeId]);
    return {};
  },
  "session/set_config_option": async (p) => {
    const done = await tell(find(p.sessionId), ["set", "-s", p.sessionId, p.configId, String(p.value)]);
    return { configOptions: done.configOptions ?? [] };
  },
  "session/set_model": async (p) => {
    await tell(find(p.sessionId), ["set", "-s", p.sessionId, "model", p.modelId]);
    return {};
  },
};

async function handle({ id, method, params }) {
  try {
    const call = methods[method];
    if (!call) throw new Refused({ code: -32601, message: `Method not found: ${method}` });
    const result = await call(params ?? {});
    if (id !== undefined) send({ id, result });
  } catch (error) {
    const shown = error instanceof Refused ? error.error : { code: -32603, message: String(error?.message ?? error) };
    if (id !== undefined) send({ id, error: shown });
  }
}

readline
  .createInterface({ input: process.stdin })
  .on("line", (line) => line.trim() && handle(JSON.parse(line)))
  .on("close", close);
