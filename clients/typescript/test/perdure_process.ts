// A process of bin/perdure dev, and proxies whose connections break.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { PerdureConfig } from "@perdure/client";
import { WebSocket } from "ws";

const webSocket = (url: string, protocols: string[]) => new WebSocket(url, protocols) as unknown as globalThis.WebSocket;

type TransportOptions = Pick<PerdureConfig, "transport" | "webSocket">;

/** The transports and their options. */
export const transports: Record<string, TransportOptions> = { sse: { transport: "sse" }, websocket: { transport: "websocket", webSocket } };

/** The transports, and a client that opens WebSockets at a route that refuses them, as a proxy does. */
export const allTransports: Record<string, TransportOptions> = {
  ...transports,
  fallback: { transport: "websocket", webSocket: (url, protocols) => webSocket(url.replace("/v1/ws", "/v1/agents"), protocols) },
};

const root = fileURLToPath(new URL("../../../", import.meta.url));
const program = join(root, "bin", "perdure");

/** Why the tests against Perdure are skipped, or false. */
export const skipReason = existsSync(program) ? false : "bin/perdure is not built: make build";

export interface Perdure {
  url: string;
  stop(): Promise<void>;
}

/** Starts Perdure on free ports with a new data directory and the agents of a directory of this repository. */
export async function start(agents = "agents"): Promise<Perdure> {
  const data = await mkdtemp(join(tmpdir(), "perdure-client-"));
  const flags = ["dev", "--addr", "127.0.0.1:0", "--temporal-port", "0", "--nats-port", "0", "--temporal-ui-port", "-1", "--data", data, "--agents", join(root, agents)];
  const child = spawn(program, flags, { stdio: ["ignore", "pipe", "pipe"] });
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  let said = "";
  child.stderr.on("data", (bytes) => (said += bytes));
  await new Promise<void>((resolve, reject) => {
    let out = "";
    child.stdout.on("data", (bytes) => (out += bytes).includes("ready") && resolve());
    void exited.then(() => reject(new Error(`perdure dev ended: ${said}`)));
  });
  const { api } = JSON.parse(await readFile(join(data, "addresses.json"), "utf8")) as { api: string };
  const stop = async () => {
    child.kill("SIGTERM");
    await exited;
    await rm(data, { recursive: true, force: true });
  };
  return { url: api, stop };
}

// Opens the connection to a server for that of a client. Each ends with the other. The set has the open ones.
function connectTo(target: URL, client: Socket, open: Set<Socket>): Socket {
  const upstream = connect(Number(target.port), target.hostname);
  const end = () => {
    client.destroy();
    upstream.destroy();
  };
  for (const socket of [client, upstream]) {
    open.add(socket);
    socket.on("close", () => (open.delete(socket), end()));
    socket.on("error", end);
  }
  return upstream;
}

// Listens on a free port. stop ends the server and the connections.
async function listen(server: Server, open: Set<Socket>): Promise<{ url: string; stop(): void }> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = () => {
    server.close();
    open.forEach((socket) => socket.destroy());
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop };
}

/** Starts a TCP proxy to a server. Each connection breaks after `next()` bytes from the server. */
export async function unreliableProxy(to: string, next: () => number): Promise<{ url: string; cuts: () => number; stop(): void }> {
  const target = new URL(to);
  const sockets = new Set<Socket>();
  let cuts = 0;
  const server = createServer((client) => {
    const upstream = connectTo(target, client, sockets);
    let allowance = next();
    client.pipe(upstream);
    upstream.on("data", (bytes) => {
      const part = bytes.subarray(0, allowance);
      allowance -= bytes.length;
      client.write(part);
      if (allowance > 0 || client.destroyed) return;
      cuts++;
      client.destroySoon(); // after the bytes that were written
      upstream.destroy();
    });
  });
  return { ...(await listen(server, sockets)), cuts: () => cuts };
}

/**
 * Starts a TCP proxy to a server. After each of `totals` bytes from clients, the connection of the last one breaks, when the
 * server has received it and has ended the connection.
 */
export async function brokenUploads(to: string, totals: number[]): Promise<{ url: string; forwarded: () => number; cuts: () => number; stop(): void }> {
  const target = new URL(to);
  const sockets = new Set<Socket>();
  let [forwarded, cuts] = [0, 0];
  const server = createServer((client) => {
    const upstream = connectTo(target, client, sockets);
    let isCut = false;
    upstream.on("data", (bytes) => isCut || client.write(bytes));
    client.on("data", (bytes) => {
      if (isCut) return;
      const part = bytes.subarray(0, (totals[cuts] ?? Infinity) - forwarded);
      forwarded += part.length;
      if (!upstream.write(part)) {
        client.pause();
        upstream.once("drain", () => client.resume());
      }
      if (forwarded !== totals[cuts]) return;
      isCut = true;
      cuts++;
      upstream.end();
    });
  });
  return { ...(await listen(server, sockets)), forwarded: () => forwarded, cuts: () => cuts };
}
