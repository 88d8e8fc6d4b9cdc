import { PerdureClient, type PerdureClientConfig } from "@perdure/client";
import { ThreadStore } from "@perdure/client/store";
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import type { Receiver } from "../dist/exchange.js";
import { SocketPool } from "../dist/socket_pool.js";
import type { RequestFrame, ResponseFrame } from "../dist/socket_frames.js";
import { maxResponses } from "../dist/stream_requests.js";
import { until } from "./event_log.js";

interface StreamRequest {
  id: string;
  threadId: string;
  after?: string;
}

/** An open response of POST /v1/streams. */
interface OpenResponse {
  streams: StreamRequest[];
  send(threadId: string, frame: object): void;
  end(): void;
  isOpen: boolean;
}

type Refusal = (socket: Socket) => void;

const status = (line: string): Refusal => (socket) => void socket.end(`HTTP/1.1 ${line}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);

/** How proxies refuse an upgrade. */
const refusals: Record<string, Refusal> = {
  "with 400": status("400 Bad Request"),
  "with 403": status("403 Forbidden"),
  "with 502": status("502 Bad Gateway"),
  "with 200": status("200 OK"),
  "by closing the connection": (socket) => socket.destroy(),
};

const webSocket = (url: string, protocols: string[]) => new WebSocket(url, protocols) as unknown as globalThis.WebSocket;

/** Starts a server behind a proxy that refuses upgrades while `refuse` is set. The proxy answers GET /v1/ws with the page, if there is one. */
async function serve(t: TestContext, refuse: Refusal, page?: { status: number }) {
  const state = {
    refuse: refuse as Refusal | undefined,
    upgrades: 0,
    isDown: false,
    responses: [] as OpenResponse[],
    requests: [] as string[],
    frames: [] as Record<string, unknown>[],
    base: "",
  };
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      state.requests.push(`${request.method} ${request.url}`);
      if (state.isDown) return void response.writeHead(502).end("no server");
      if (request.url === "/v1/ws" && page) return void response.writeHead(page.status).end("a page of the proxy");
      if (request.url !== "/v1/streams" || request.method !== "POST") {
        const [code, status] = request.url === "/v1/ws" ? ["upgrade_required", 426] : request.url === "/v1/streams" ? ["method_not_allowed", 405] : ["", 202];
        return void response.writeHead(status as number, { "Content-Type": "application/json" }).end(JSON.stringify(code ? { status, code } : {}));
      }
      const { streams } = JSON.parse(body) as { streams: StreamRequest[] };
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.flushHeaders();
      const idOf = (threadId: string) => streams.find((stream) => stream.threadId === threadId)!.id;
      const open: OpenResponse = {
        streams,
        send: (threadId, frame) => void response.write(`data: ${JSON.stringify({ ...frame, id: idOf(threadId) })}\n\n`),
        end: () => void response.end(),
        isOpen: true,
      };
      response.on("close", () => (open.isOpen = false));
      state.responses.push(open);
      for (const { threadId } of streams) open.send(threadId, { type: "ack", request: "subscribe" });
    });
  });
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => "ag-ui.perdure.v1" });
  server.on("upgrade", (request, socket, head) => {
    state.upgrades++;
    if (state.refuse) return state.refuse(socket as Socket);
    sockets.handleUpgrade(request, socket, head, (connection) => {
      connection.on("message", (data) => {
        const frame = JSON.parse(String(data)) as Record<string, unknown>;
        state.frames.push(frame);
        connection.send(JSON.stringify({ type: "ack", id: frame.id, request: frame.type }));
        if (frame.type === "subscribe") connection.send(JSON.stringify({ ...event(Number(frame.after ?? 0) + 1), id: frame.id }));
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  state.base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  t.after(() => {
    for (const client of sockets.clients) client.terminate();
    server.closeAllConnections();
    server.close();
  });
  return state;
}

const event = (n: number) => ({ type: "event", cursor: String(n), event: { type: "CUSTOM", name: `event ${n}` } });

const clientOf = (base: string, more: Partial<PerdureClientConfig> = {}) =>
  new PerdureClient({ baseUrl: base, transport: "websocket", webSocket, retry: { baseDelay: 0, attempts: 0 }, ...more });

const isOpen = ({ isOpen }: OpenResponse) => isOpen;

for (const [name, refuse] of Object.entries(refusals)) {
  test(`a client whose WebSockets are refused ${name} reads over server-sent events`, async (t) => {
    const server = await serve(t, refuse);
    const transports: string[] = [];
    const client = clientOf(server.base, { onTransportChanged: (transport) => void transports.push(transport) });
    const events = client.events("t-1");
    const first = events.next();
    await until(() => server.responses.length === 1);
    server.responses[0]!.send("t-1", event(1));
    assert.equal((await first).value?.event.name, "event 1");
    assert.deepEqual(transports, ["sse"]);
    assert.equal(server.upgrades, 3);
    await client.cancel("t-1", "r-1");
    assert.ok(server.requests.includes("POST /v1/threads/t-1/runs/r-1/cancel"));
    await events.return();
    await until(() => !server.responses.some(isOpen));
  });
}

test("a client whose handshake has no response reads over server-sent events after the first one", async (t) => {
  const server = await serve(t, () => {});
  const store = new ThreadStore(clientOf(server.base, { silence: 200 }), { threadId: "t-1", agent: "demo" });
  const shown: string[] = [];
  const show = () => {
    const { connection, transport } = store.getSnapshot();
    if (`${connection} ${transport}` !== shown.at(-1)) shown.push(`${connection} ${transport}`);
  };
  t.after(store.subscribe(show));
  show();
  await until(() => shown.at(-1) === "connected sse");
  assert.deepEqual(shown, ["connecting websocket", "connected sse"]);
  assert.equal(server.upgrades, 1);
});

test("a proxy that answers the route of WebSockets by itself does not prevent the fallback", async (t) => {
  for (const status of [200, 403]) {
    const server = await serve(t, refusals["with 200"]!, { status });
    const events = clientOf(server.base).events("t-1");
    const first = events.next();
    await until(() => server.responses.length === 1);
    server.responses[0]!.send("t-1", event(1));
    assert.equal((await first).value?.event.name, "event 1");
    await events.return();
  }
});

test("a server that cannot be reached is no reason for the fallback", async (t) => {
  const server = await serve(t, refusals["with 502"]!);
  server.isDown = true;
  let attempts = 0;
  const onRetry = () => {
    if (++attempts === 10) server.isDown = false;
    if (attempts === 10) server.refuse = undefined;
  };
  const events = clientOf(server.base, { retry: { baseDelay: 0 }, onRetry }).events("t-1");
  assert.equal((await events.next()).value?.event.name, "event 1");
  assert.equal(server.frames[0]?.type, "subscribe");
  await events.return();
});

test("a broken response continues after the cursor of each stream", async (t) => {
  const server = await serve(t, refusals["with 403"]!);
  const client = clientOf(server.base, { retry: { baseDelay: 0, attempts: 5 } });
  const [one, two] = [client.events("t-1"), client.events("t-2")];
  const firsts = [one.next(), two.next()];
  await until(() => server.responses.length === 1 && server.responses[0]!.streams.length === 2);
  server.responses[0]!.send("t-1", event(1));
  server.responses[0]!.send("t-2", event(5));
  await Promise.all(firsts);
  const seconds = [one.next(), two.next()];
  server.responses[0]!.end();
  await until(() => server.responses.slice(1).flatMap(({ streams }) => streams).length === 2);
  const open = server.responses.slice(1);
  assert.deepEqual(open.flatMap(({ streams }) => streams.map(({ threadId, after }) => `${threadId} ${after}`)).sort(), ["t-1 1", "t-2 5"]);
  for (const response of open) for (const { threadId, after } of response.streams) response.send(threadId, event(Number(after) + 1));
  assert.deepEqual((await Promise.all(seconds)).map(({ value }) => value?.event.name), ["event 2", "event 6"]);
  await Promise.all([one.return(), two.return()]);
});

// A reader of a pool that opens its request again when it is moved, as a client does.
function follow(pool: SocketPool, threadId: string) {
  const seen: string[] = [];
  let after: string | undefined;
  let request: ReturnType<SocketPool["open"]>;
  const receiver: Receiver = {
    receive: (frame: ResponseFrame) => {
      if (frame.type !== "event") return;
      after = frame.cursor;
      seen.push(String(after));
    },
    lose: () => open(),
  };
  const open = () => (request = pool.open({ type: "subscribe", threadId, after } as RequestFrame, receiver));
  open();
  return { seen, close: () => request.close() };
}

test("all threads share a few responses, however they begin, and no event is lost or repeated", async (t) => {
  const server = await serve(t, refusals["with 403"]!);
  const pool = new SocketPool({ base: server.base, token: async () => undefined, webSocket, fetch: (url, init) => fetch(url, init), silence: 45_000 });
  t.after(() => pool.close(new Error("the test has ended")));
  const followers = new Map<string, ReturnType<typeof follow>>();
  const streams = () => server.responses.filter(isOpen).flatMap(({ streams }) => streams);
  for (let n = 0; n < 20; n++) {
    followers.set(`t-${n}`, follow(pool, `t-${n}`));
    await until(() => streams().length === n + 1);
    assert.ok(server.responses.filter(isOpen).length <= maxResponses);
    // Every thread has an event while streams move.
    for (const response of server.responses.filter(isOpen)) {
      for (const { threadId, after = "0" } of response.streams) {
        const { seen } = followers.get(threadId)!;
        response.send(threadId, event(Number(seen.at(-1) ?? after) + 1));
        await until(() => seen.at(-1) !== after && seen.length > 0);
      }
    }
  }
  for (const { seen } of followers.values()) assert.deepEqual(seen, seen.map((_, i) => String(i + 1)));
  assert.equal(followers.get("t-0")!.seen.length, 20);
  for (const { close } of followers.values()) close();
  await until(() => !server.responses.some(isOpen));
});

test("the pool tries a WebSocket again after longer and longer pauses, and returns to it", async (t) => {
  const server = await serve(t, refusals["with 403"]!);
  const pool = new SocketPool({ base: server.base, token: async () => undefined, webSocket, fetch: (url, init) => fetch(url, init), silence: 45_000 }, 20);
  t.after(() => pool.close(new Error("the test has ended")));
  const follower = follow(pool, "t-1");
  await until(() => server.responses.length === 1);
  server.responses[0]!.send("t-1", event(1));
  await until(() => server.upgrades >= 6); // three refusals, and three attempts during the fallback
  assert.deepEqual(follower.seen, ["1"]);
  server.refuse = undefined;
  await until(() => follower.seen.length === 2);
  assert.deepEqual(server.frames.map(({ type, after }) => `${type} ${after}`), ["subscribe 1"]);
  await until(() => !server.responses[0]!.isOpen);
  follower.close();
});
