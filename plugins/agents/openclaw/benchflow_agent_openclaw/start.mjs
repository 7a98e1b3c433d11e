// Starts OpenClaw's parts in the box: its gateway, a probe for it, and the ACP program that talks to it.
//
// Each session has a gateway of its own, with its own port and state. `gateway` takes a free port and makes a folder
// named after it; `acp` claims the first folder that nobody has; `ready` waits for one that answers and is not claimed.
// So two sessions in one box never share a gateway, and none of them has to know a port beforehand.
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import path from "node:path";

const [mode] = process.argv.slice(2);
const home = process.env.BENCHFLOW_OPENCLAW_HOME;
const slots = path.join(home, "slots");
const program = path.join(import.meta.dirname, "node_modules/openclaw/openclaw.mjs");

function alive(slot) {
  try {
    process.kill(Number(fs.readFileSync(path.join(slot, "pid"), "utf8")), 0);
    return true;
  } catch {
    return false;
  }
}

function all() {
  return fs.existsSync(slots) ? fs.readdirSync(slots).map((name) => path.join(slots, name)) : [];
}

function answers(slot) {
  return new Promise((resolve) => {
    const request = http.get({ port: Number(path.basename(slot)), path: "/healthz", timeout: 5000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(false));
  });
}

async function waiting() {
  for (const slot of all()) {
    if (!fs.existsSync(path.join(slot, "claimed")) && alive(slot) && (await answers(slot))) return slot;
  }
  return null;
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer().on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function become(...args) {
  process.argv = [process.argv[0], program, ...args];
  await import(program);
}

// On a busy machine a gateway gives up when a part of it takes five seconds to start: it is tried again, while nobody
// has claimed it.
async function gateway() {
  for (let attempt = 1; ; attempt++) {
    const child = spawn(process.execPath, [import.meta.filename, "gateway-itself"], { stdio: "inherit" });
    const end = () => child.kill("SIGTERM");
    process.once("SIGTERM", end);
    const [code] = await once(child, "exit");
    process.removeListener("SIGTERM", end);
    if (code === 0 || code === null || attempt === 3 || wasClaimed(child.pid)) process.exit(code ?? 1);
  }
}

function wasClaimed(pid) {
  const own = (slot) => fs.readFileSync(path.join(slot, "pid"), "utf8") === String(pid);
  return all().some((slot) => fs.existsSync(path.join(slot, "claimed")) && own(slot));
}

async function gatewayItself() {
  for (const slot of all()) if (!alive(slot)) fs.rmSync(slot, { recursive: true, force: true });
  const port = await freePort();
  const slot = path.join(slots, String(port));
  fs.mkdirSync(slot, { recursive: true, mode: 0o700 });
  // The gateway writes to its settings: it gets a copy.
  process.env.OPENCLAW_CONFIG_PATH = path.join(slot, "openclaw.json");
  process.env.OPENCLAW_STATE_DIR = path.join(slot, "state");
  fs.copyFileSync(path.join(home, "openclaw.json"), process.env.OPENCLAW_CONFIG_PATH);
  fs.writeFileSync(path.join(slot, "pid"), String(process.pid));
  await become("gateway", "run", "--port", String(port));
}

async function acp() {
  // It was ready a moment ago; on a busy machine it may need another moment to say so again.
  let slot = await waiting();
  for (const end = Date.now() + 60_000; !slot && Date.now() < end; slot = await waiting()) {
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  if (!slot) {
    process.stderr.write("no gateway of OpenClaw is waiting for a session\n");
    process.exit(1);
  }
  fs.writeFileSync(path.join(slot, "claimed"), "");
  process.env.OPENCLAW_CONFIG_PATH = path.join(slot, "openclaw.json");
  process.env.OPENCLAW_STATE_DIR = path.join(slot, "state");
  const url = `ws://127.0.0.1:${path.basename(slot)}`;
  await become("acp", "--url", url, "--token-file", path.join(home, "token"), "--no-prefix-cwd");
}

if (mode === "gateway") await gateway();
else if (mode === "gateway-itself") await gatewayItself();
else if (mode === "ready") process.exit((await waiting()) ? 0 : 1);
else await acp();
