import { ConnectionLostError, PerdureClient, type PerdureClientConfig, ProblemError } from "@perdure/client";
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { brokenUploads, type Perdure, skipReason, start } from "./perdure_process.js";
import { fetchOf, problem, type ReceivedRequest, type Reply } from "./scripted_server.js";

const MiB = 1024 * 1024;

// Bytes that differ from those at every other place of the same part.
const noise = (size: number) => Uint8Array.from({ length: size }, (_, i) => (i * 31 + (i >> 8) * 17 + (i >> 20)) % 256);
const digest = async (file: Blob) => createHash("sha256").update(new Uint8Array(await file.arrayBuffer())).digest("hex");

describe("an upload of a large file", { skip: skipReason, timeout: 240_000 }, () => {
  let perdure: Perdure;
  before(async () => (perdure = await start("clients/typescript/test/agents")));
  after(() => perdure.stop());

  test("continues after each lost connection, and sends no byte again", async (t) => {
    const proxy = await brokenUploads(perdure.url, [5 * MiB + 1, 6 * MiB, 13 * MiB]);
    t.after(proxy.stop);
    const client = new PerdureClient({ baseUrl: proxy.url, retry: { baseDelay: 10 } });
    const file = new Blob([noise(17 * MiB + 17)], { type: "application/x-noise" });
    const progress: number[] = [];
    const { id, name, type, size } = await client.uploadFile(file, {
      name: "Lärm.bin",
      onProgress: (sent, total) => {
        progress.push(sent);
        assert.equal(total, file.size);
      },
    });
    assert.deepEqual([name, type, size], ["Lärm.bin", "application/x-noise", file.size]);
    assert.equal(await digest(await client.openFile(id)), await digest(file));
    assert.equal(proxy.cuts(), 3);
    assert.ok(proxy.forwarded() < file.size + 16_000, `the server has received ${proxy.forwarded()} bytes, and the file has ${file.size}`);
    assert.deepEqual(progress, [...new Set(progress)].sort((a, b) => a - b));
    assert.equal(progress.at(-1), file.size);
  });

  test("is deleted when the signal is aborted", async () => {
    let upload = "";
    let deleted = () => {};
    const deletion = new Promise<void>((resolve) => (deleted = resolve));
    const client = new PerdureClient({
      baseUrl: perdure.url,
      fetch: async (url, init) => {
        const response = await fetch(url, init);
        if (init.method === "PATCH") upload = url;
        if (init.method === "DELETE") deleted();
        return response;
      },
    });
    const abort = new AbortController();
    const reason = new Error("enough");
    await assert.rejects(client.uploadFile(new Blob([noise(9 * MiB)]), { name: "aborted.bin", signal: abort.signal, onProgress: () => abort.abort(reason) }), reason);
    await deletion;
    assert.equal((await fetch(upload, { method: "HEAD", headers: { "Tus-Resumable": "1.0.0" } })).status, 404);
    assert.ok((await client.files()).items.every((file) => file.name !== "aborted.bin"));
  });

  test("is refused before its bytes are sent, if it is too large", async () => {
    const methods: (string | undefined)[] = [];
    const client = new PerdureClient({ baseUrl: perdure.url, fetch: (url, init) => (methods.push(init.method), fetch(url, init)) });
    const file = new Blob(new Array<Uint8Array<ArrayBuffer>>(101).fill(new Uint8Array(MiB)));
    await assert.rejects(client.uploadFile(file), { name: "ProblemError", status: 413, code: "too_large" });
    assert.deepEqual(methods, ["POST"]);
  });
});

const stored = { id: "file_1", url: "/v1/files/file_1", type: "text/plain", size: 9 * MiB, createdAt: "2026-01-02T03:04:05Z" };

// Uploads 9 MiB to a server that takes all bytes of each request, except for scripted replies to the requests of an upload.
async function uploadTo(replies: readonly (Reply | undefined)[], config: Partial<PerdureClientConfig> = {}) {
  const requests: ReceivedRequest[] = [];
  let offset = 0;
  let n = 0;
  const script = ({ method, path, body }: ReceivedRequest): Reply => {
    if (!path.includes("/v1/uploads")) return { body: JSON.stringify(stored) };
    const reply = replies[n++];
    if (reply) return reply;
    if (method === "POST") return { status: 201, headers: { Location: "/v1/uploads/upload_1" } };
    if (method === "PATCH") offset += (body as unknown as Blob).size;
    return { status: method === "PATCH" ? 204 : 200, headers: { "Upload-Offset": String(offset), ...(offset === 9 * MiB && { "Upload-File": "/v1/files/file_1" }) } };
  };
  const client = new PerdureClient({ baseUrl: "http://s/base", retry: { baseDelay: 1, attempts: 3 }, fetch: fetchOf(script, requests), ...config });
  const lines = () => requests.map(({ method, path, headers }) => [method, path.replace("/base/v1", ""), headers["upload-offset"]].filter((text) => text !== undefined).join(" "));
  const result = client.uploadFile(new Blob([new Uint8Array(9 * MiB)], { type: "text/plain" }), { name: "a.txt" });
  return { requests, lines, settled: await result.then((file) => ({ file, error: undefined }), (error: unknown) => ({ file: undefined, error })) };
}

test("an upload has a request for each part, with a new token, and resolves with the file", async () => {
  let tokens = 0;
  const { requests, lines, settled } = await uploadTo([], { token: () => String(++tokens), headers: { "X-App": "chat" } });
  assert.deepEqual(settled.file, stored);
  assert.deepEqual(lines(), [
    "POST /uploads", "PATCH /uploads/upload_1 0", `PATCH /uploads/upload_1 ${4 * MiB}`, `PATCH /uploads/upload_1 ${8 * MiB}`, "GET /files/file_1/metadata",
  ]);
  assert.deepEqual(requests.map(({ headers }) => headers["authorization"]), [1, 2, 3, 4, 5].map((n) => `Bearer ${n}`));
  assert.ok(requests.every(({ headers }) => headers["x-app"] === "chat"));
  const { "upload-length": length, "upload-metadata": metadata } = requests[0]!.headers;
  assert.deepEqual([length, metadata], [String(9 * MiB), `filename ${btoa("a.txt")},filetype ${btoa("text/plain")}`]);
});

test("an upload asks for its offset after a refusal that is temporary", async () => {
  for (const reply of [problem(409, "upload_changed"), problem(503, "unavailable"), { end: "refuse" }] satisfies Reply[]) {
    const { lines, settled } = await uploadTo([undefined, undefined, reply]);
    assert.deepEqual(settled.file, stored);
    assert.deepEqual(lines().slice(2, 5), [`PATCH /uploads/upload_1 ${4 * MiB}`, "HEAD /uploads/upload_1", `PATCH /uploads/upload_1 ${4 * MiB}`]);
  }
});

test("a server without resumable uploads receives the file in one request", async () => {
  for (const status of [404, 405]) {
    const { lines, settled } = await uploadTo([{ status }]);
    assert.deepEqual(settled.file, stored);
    assert.deepEqual(lines(), ["POST /uploads", "POST /files"]);
  }
});

test("a refused upload rejects with the code of the API", async () => {
  const lost: Reply = { end: "refuse" };
  for (const [replies, code] of [
    [[problem(413, "too_large")], "too_large"],
    [[undefined, undefined, problem(422, "file_infected")], "file_infected"],
    [[undefined, lost, { status: 422 }], "file_infected"], // HEAD has no body
    [[undefined, lost, { status: 404 }], "unknown_upload"],
    [[{ status: 201 }], "http_502"], // without Location
    [[undefined, { status: 204, headers: { "Upload-Offset": String(9 * MiB) } }], "http_502"], // without Upload-File
    [[undefined, { status: 204, headers: { "Upload-Offset": String(10 * MiB) } }], "http_502"],
  ] satisfies [(Reply | undefined)[], string][]) {
    const { settled } = await uploadTo(replies);
    assert.ok(settled.error instanceof ProblemError, `${code}: ${String(settled.error)}`);
    assert.equal(settled.error.code, code);
  }
});

test("an upload gives up after failures in a row without progress", async () => {
  const down = new Array<Reply>(10).fill(problem(503, "unavailable"));
  const { lines, settled } = await uploadTo([undefined, undefined, ...down]);
  assert.ok(settled.error instanceof ConnectionLostError);
  assert.match(settled.error.message, /unavailable/);
  assert.equal(lines().length, 2 + 4);

  const silent = new Array<Reply>(10).fill({ status: 204, headers: { "Upload-Offset": "0" } });
  const { settled: stuck } = await uploadTo([undefined, ...silent]);
  assert.ok(stuck.error instanceof ConnectionLostError);
  assert.match(stuck.error.message, /taken no byte/);
});
