// A server whose responses are scripted: over HTTP, or as a fetch function that ends at an exact byte.
import type { HttpAgentFetchFn } from "@ag-ui/client";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";

/** A request that the server has received. */
export interface ReceivedRequest {
  method: string;
  path: string;
  query: string;
  headers: Record<string, string>;
  body: string;
}

/** A response: the status, the bytes of the body, and how the connection ends after them. */
export interface Reply {
  status?: number;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  /** "clean" ends the body, "cut" breaks the connection, "hang" keeps it open, and "refuse" sends no response. */
  end?: "clean" | "cut" | "hang" | "refuse";
}

/** Returns the response to the n-th request, from 0. */
export type Script = (requests: ReceivedRequest, n: number) => Reply;

export const problem = (status: number, code: string, more: object = {}): Reply => ({
  status,
  headers: { "Content-Type": "application/problem+json" },
  body: JSON.stringify({ type: "about:blank", status, code, ...more }),
});

const bytesOf = (body: string | Uint8Array = "") => (typeof body === "string" ? new TextEncoder().encode(body) : body);
const defaultHeaders = { "Content-Type": "text/event-stream" };

/** Returns a fetch function with scripted responses. It appends the requests to `requests`. size is the size of a chunk in bytes. */
export function fetchOf(script: Script, requests: ReceivedRequest[] = [], size = Infinity): HttpAgentFetchFn {
  return async (address, init) => {
    const url = new URL(address);
    requests.push({
      method: init.method ?? "GET",
      path: url.pathname,
      query: url.search,
      headers: Object.fromEntries(new Headers(init.headers)),
      body: (init.body as string | undefined) ?? "",
    });
    const { status = 200, headers = defaultHeaders, body, end = "clean" } = script(requests.at(-1)!, requests.length - 1);
    if (end === "refuse") throw new TypeError("fetch failed");
    const bytes = bytesOf(body);
    let sent = 0;
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      if (sent < bytes.length) {
        controller.enqueue(bytes.slice(sent, (sent += size)));
      } else if (end === "clean") {
        controller.close();
      } else if (end === "cut") {
        controller.error(new TypeError("terminated"));
      } else {
        return new Promise<void>((resolve) => init.signal?.addEventListener("abort", () => resolve(controller.error(init.signal?.reason))));
      }
      return;
    };
    return new Response(status === 204 ? null : new ReadableStream({ pull }, { highWaterMark: 0 }), { status, headers });
  };
}

/** Starts an HTTP server with scripted responses, which stops when the test ends. */
export async function serve(t: TestContext, script: Script): Promise<{ url: string; requests: ReceivedRequest[]; open: () => number }> {
  const requests: ReceivedRequest[] = [];
  let open = 0;
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const { pathname, search } = new URL(request.url!, "http://server");
      requests.push({ method: request.method!, path: pathname, query: search, headers: request.headers as Record<string, string>, body });
      const reply = script(requests.at(-1)!, requests.length - 1);
      if (reply.end === "refuse") return void request.socket.destroy();
      open++;
      response.on("close", () => open--);
      response.writeHead(reply.status ?? 200, reply.headers ?? defaultHeaders);
      response.flushHeaders();
      const bytes = bytesOf(reply.body);
      if (reply.end === "hang") response.write(bytes);
      else if (reply.end === "cut") response.write(bytes, () => request.socket.destroy());
      else response.end(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, open: () => open };
}
