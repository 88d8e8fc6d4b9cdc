import { PerdureClient, type PerdureClientConfig } from "@perdure/client";
import { ThreadStore } from "@perdure/client/store";
import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { until } from "./event_log.js";

const webSocket = (url: string, protocols: string[]) => new WebSocket(url, protocols) as unknown as globalThis.WebSocket;

/** Starts a server that accepts streams over both transports, and sends no event. */
async function serveIdleThreads(t: TestContext) {
  const state = { base: "", isDown: false, accepted: 0, kill: () => {} };
  const connections = new Set<Socket>();
  const accept = (response: ServerResponse) => {
    state.accepted++;
    response.writeHead(200, { "Content-Type": "text/event-stream" }).flushHeaders();
  };
  const server = createServer((request, response) => {
    if (state.isDown) return void request.socket.destroy();
    accept(response);
  });
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => "ag-ui.perdure.v1" });
  server.on("upgrade", (request, socket, head) => {
    if (state.isDown) return void socket.destroy();
    sockets.handleUpgrade(request, socket, head, (connection) => {
      connection.on("message", (data) => {
        const { id, type } = JSON.parse(String(data)) as { id: string; type: string };
        state.accepted++;
        connection.send(JSON.stringify({ type: "ack", id, request: type }));
      });
    });
  });
  server.on("connection", (socket) => {
    connections.add(socket);
    socket.on("close", () => connections.delete(socket));
  });
  state.kill = () => {
    state.isDown = true;
    connections.forEach((socket) => socket.destroy());
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  state.base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  t.after(() => {
    state.kill();
    server.close();
  });
  return state;
}

const transports: Record<string, Partial<PerdureClientConfig>> = { sse: { transport: "sse" }, websocket: { transport: "websocket", webSocket } };

for (const [name, options] of Object.entries(transports)) {
  test(`an idle thread is connected when the server has accepted its stream over ${name}`, async (t) => {
    const server = await serveIdleThreads(t);
    const client = new PerdureClient({ baseUrl: server.base, retry: { baseDelay: 10, maxDelay: 10 }, ...options });
    const store = new ThreadStore(client, { threadId: "idle", agent: "demo" });
    const shown: string[] = [];
    const show = () => {
      const { connection } = store.getSnapshot();
      if (connection !== shown.at(-1)) shown.push(connection);
    };
    show();
    t.after(store.subscribe(show));
    await until(() => shown.at(-1) === "connected");
    server.kill();
    await until(() => shown.at(-1) === "reconnecting");
    server.isDown = false;
    await until(() => shown.at(-1) === "connected");
    assert.deepEqual(shown, ["connecting", "connected", "reconnecting", "connected"]);
    assert.equal(server.accepted, 2);
  });
}

test("a stream of a trace tells its own listeners when its connection is lost and found", async (t) => {
  const server = await serveIdleThreads(t);
  const client = new PerdureClient({ baseUrl: server.base, retry: { baseDelay: 10, maxDelay: 10 } });
  const told: string[] = [];
  const tell = (what: string) => () => void (what !== told.at(-1) && told.push(what));
  const reading = new AbortController();
  const next = client.traceEvents("idle", "run", { signal: reading.signal, onConnected: tell("connected"), onRetry: tell("retry"), onReconnected: tell("reconnected") }).next();
  await until(() => told.at(-1) === "connected");
  server.kill();
  await until(() => told.at(-1) === "retry");
  server.isDown = false;
  await until(() => told.at(-1) === "reconnected");
  assert.deepEqual(told, ["connected", "retry", "connected", "reconnected"]);
  reading.abort();
  await assert.rejects(next);
});
