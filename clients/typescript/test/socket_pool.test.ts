import { type PerdureClientConfig, PerdureClient, ProblemError } from "@perdure/client";
import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { SocketPool } from "../dist/socket_pool.js";
import { windowSize } from "../dist/exchange.js";
import { until } from "./event_log.js";

interface Frame {
  type: string;
  id: string;
  [member: string]: unknown;
}

/** A connection of a client to the scripted server. */
interface Peer {
  frames: Frame[];
  request: IncomingMessage;
  send(frame: object): void;
  close(code: number): void;
}

const webSocket = (url: string, protocols: string[]) => new WebSocket(url, protocols) as unknown as globalThis.WebSocket;

// A server of WebSockets. refuse returns the problem of a handshake; undefined = accept it.
async function serve(t: TestContext, onFrame: (frame: Frame, peer: Peer) => void, refuse: (request: IncomingMessage) => { status: number; code: string } | undefined = () => undefined) {
  const peers: Peer[] = [];
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => "ag-ui.perdure.v1" });
  const server = createServer((request, response) => {
    const { status, code } = refuse(request) ?? { status: 426, code: "upgrade_required" };
    response.writeHead(status, { "Content-Type": "application/problem+json" }).end(JSON.stringify({ status, code }));
  });
  server.on("upgrade", (request, socket, head) => {
    if (refuse(request)) return void socket.end("HTTP/1.1 401 Unauthorized\r\n\r\n");
    sockets.handleUpgrade(request, socket, head, (connection) => {
      const peer: Peer = { frames: [], request, send: (frame) => connection.send(JSON.stringify(frame)), close: (code) => connection.close(code) };
      peers.push(peer);
      connection.on("message", (data) => {
        const frame = JSON.parse(String(data)) as Frame;
        peer.frames.push(frame);
        onFrame(frame, peer);
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const client of sockets.clients) client.terminate();
    server.closeAllConnections();
    server.close();
  });
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { base, peers };
}

const clientOf = (base: string, more: Partial<PerdureClientConfig> = {}) =>
  new PerdureClient({ baseUrl: base, transport: "websocket", webSocket, retry: { baseDelay: 0, attempts: 5 }, ...more });

const acknowledge = (frame: Frame, peer: Peer) => peer.send({ type: "ack", id: frame.id, request: frame.type });

test("a pool opens a second WebSocket for the 65th request", async (t) => {
  const { base, peers } = await serve(t, acknowledge);
  const pool = new SocketPool({ base, token: async () => undefined, webSocket, fetch: (url, init) => fetch(url, init), silence: 45_000 });
  t.after(() => pool.close(new Error("the test has ended")));
  let acknowledged = 0;
  const requests = Array.from({ length: 65 }, (_, i) =>
    pool.open({ type: "subscribe", threadId: `t-${i}` }, { receive: ({ type }) => void (type === "ack" && acknowledged++), lose() {} }),
  );
  await until(() => acknowledged === 65);
  assert.deepEqual(peers.map(({ frames }) => frames.length), [64, 1]);
  requests[0]!.close();
  await until(() => peers[0]!.frames.at(-1)?.type === "unsubscribe");
});

test("a pool moves a request that the server refuses as one too many", async (t) => {
  const { base, peers } = await serve(t, (frame, peer) => {
    const isRefused = peers[0] === peer && frame.threadId === "t-2";
    if (isRefused) return peer.send({ type: "error", id: frame.id, status: 429, code: "too_many_streams" });
    acknowledge(frame, peer);
    peer.send({ type: "event", id: frame.id, cursor: "1", event: { type: "RUN_STARTED", threadId: frame.threadId, runId: "r" } });
  });
  const client = clientOf(base);
  const first = client.events("t-1");
  const second = client.events("t-2");
  await first.next();
  assert.equal((await second.next()).value?.event.threadId, "t-2");
  assert.equal(peers.length, 2);
  await Promise.all([first.return(), second.return()]);
});

test("a reader that is too slow loses its request and continues after its cursor", async (t) => {
  const text = "x".repeat(1 << 20);
  const count = 12;
  const { base, peers } = await serve(t, (frame, peer) => {
    if (frame.type !== "subscribe") return acknowledge(frame, peer);
    acknowledge(frame, peer);
    for (let i = Number(frame.after ?? 0) + 1; i <= count; i++) {
      peer.send({ type: "event", id: frame.id, cursor: String(i).padStart(3, "0"), event: { type: "CUSTOM", name: String(i), value: text } });
    }
  });
  const client = clientOf(base);
  const seen: string[] = [];
  for await (const { event } of client.events("t-1")) {
    // The events arrive while this reader waits.
    if (seen.length === 0) await until(() => peers.some(({ frames }) => frames.some(({ type }) => type === "unsubscribe")));
    seen.push(String(event.name));
    if (seen.length === count) break;
  }
  assert.deepEqual(seen, Array.from({ length: count }, (_, i) => String(i + 1)));
  const subscriptions = peers.flatMap(({ frames }) => frames.filter(({ type }) => type === "subscribe"));
  assert.ok(subscriptions.length > 1, "the reader was never too slow");
  assert.ok(windowSize < count * text.length);
});

test("a WebSocket whose credentials expire is replaced with new ones", async (t) => {
  let issued = 0;
  const { base, peers } = await serve(t, (frame, peer) => {
    const n = frame.after === undefined ? 1 : 2;
    acknowledge(frame, peer);
    peer.send({ type: "event", id: frame.id, cursor: String(n), event: { type: "CUSTOM", name: `event ${n}` } });
    if (peers.length === 1) peer.close(3000);
  });
  const renew = () => `token-${issued}`;
  const client = clientOf(base, { token: renew, onRetry: () => issued++ });
  const names: unknown[] = [];
  for await (const { event } of client.events("t-1")) {
    names.push(event.name);
    if (names.length === 2) break;
  }
  assert.deepEqual(names, ["event 1", "event 2"]);
  const offered = peers.map(({ request }) => request.headers["sec-websocket-protocol"]);
  assert.deepEqual(offered, ["ag-ui.perdure.v1,bearer.token-0", "ag-ui.perdure.v1,bearer.token-1"]);
  assert.equal(peers[1]!.frames[0]!.after, "1");
});

test("the refusal of a handshake is a ProblemError", async (t) => {
  const { base } = await serve(t, acknowledge, () => ({ status: 401, code: "unauthenticated" }));
  await assert.rejects(clientOf(base, { token: "wrong" }).cancel("t", "r"), (error) => error instanceof ProblemError && error.code === "unauthenticated");
});

test("a pointer into a frame becomes a pointer into the input", async (t) => {
  const { base } = await serve(t, (frame, peer) => {
    peer.send({ type: "error", id: frame.id, status: 400, code: "invalid_input", pointer: "/input/messages/0" });
  });
  await assert.rejects(clientOf(base).startRun("demo", { threadId: "t" }), { problem: { status: 400, code: "invalid_input", pointer: "/messages/0" } });
});

test("a WebSocket without a response to its ping is replaced", async (t) => {
  const { base, peers } = await serve(t, (frame, peer) => {
    if (frame.type === "ping" && peers.length === 1) return;
    acknowledge(frame, peer);
    if (peers.length === 2 && frame.type === "subscribe") peer.send({ type: "event", id: frame.id, cursor: "1", event: { type: "CUSTOM", name: "alive" } });
  });
  const events = clientOf(base, { silence: 150 }).events("t-1");
  assert.equal((await events.next()).value?.event.name, "alive");
  await events.return();
});

test("a request that is larger than a frame is refused", async (t) => {
  const { base } = await serve(t, acknowledge);
  const message = { id: "m", role: "user" as const, content: "x".repeat(11 << 20) };
  await assert.rejects(clientOf(base).startRun("demo", { threadId: "t", messages: [message] }), { code: "too_large" });
});

test("approvals are read again when a socket opens after a loss", async (t) => {
  const { base, peers } = await serve(t, acknowledge);
  const requests: string[] = [];
  const fetch = async (url: string) => {
    requests.push(url);
    return new Response(new ReadableStream()); // a proxy keeps the response open
  };
  const pool = new SocketPool({ base, token: async () => undefined, webSocket, fetch, silence: 45_000 });
  t.after(() => pool.close(new Error("the test has ended")));
  const lost: string[] = [];
  const readerOf = (name: string) => ({ receive: () => {}, lose: () => void lost.push(name) });
  pool.open({ type: "approvals", query: "" }, readerOf("approvals"));
  pool.open({ type: "subscribe", threadId: "a" }, readerOf("thread"));
  await until(() => peers[0]?.frames.length === 1 && requests.length === 1);
  peers[0]!.close(1011);
  await until(() => lost.length > 0);
  assert.deepEqual(lost, ["thread"]);
  pool.open({ type: "subscribe", threadId: "a" }, readerOf("thread"));
  await until(() => lost.length > 1);
  assert.deepEqual(lost, ["thread", "approvals"]);
});
