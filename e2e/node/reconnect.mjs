// A fetch for HttpAgent that reconnects to a run whenever its connection ends before the run does.
// The agent sees one response, with whole frames only. A frame that a cut has truncated is dropped, since
// the server sends it again after the last event id.
//
//   addresses: the file with the server's addresses; read again for each connection
//   cuts:      the n-th connection is cut after so many bytes, anywhere in a frame; for tests
import { readFile } from "node:fs/promises";

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const patience = 30_000;

export function reconnecting({ addresses, cuts = [] }) {
  const remaining = [...cuts];
  const base = async () => JSON.parse(await readFile(addresses, "utf8")).api;

  return async (url, init) => {
    const { threadId, runId } = JSON.parse(init.body);
    const events = `/v1/threads/${encodeURIComponent(threadId)}/runs/${encodeURIComponent(runId)}/events`;
    let lastId;

    // Without an event id it sends the POST again: the same run id and input attach to the run.
    const connect = async () =>
      lastId === undefined
        ? fetch((await base()) + new URL(url).pathname, init)
        : fetch((await base()) + events, { headers: { "Last-Event-ID": lastId }, signal: init.signal });

    const insist = async () => {
      for (const deadline = Date.now() + patience; ; await pause(20)) {
        try {
          const response = await connect();
          if (response.status < 500 || Date.now() > deadline) return response;
          await response.body?.cancel();
        } catch (error) {
          if (init.signal?.aborted || Date.now() > deadline) throw error;
        }
      }
    };

    const first = await insist();
    if (!first.ok) return first;

    async function* frames() {
      for (let response = first; ; response = await insist()) {
        if (response.status === 204) return;
        if (!response.ok) {
          const message = `the run's events are not to be had: HTTP ${response.status}`;
          yield `data: ${JSON.stringify({ type: "RUN_ERROR", code: "connection_lost", message })}\n\n`;
          return;
        }
        for await (const frame of whole(response, remaining.shift() ?? Infinity)) {
          lastId = /^id: (.*)$/m.exec(frame)?.[1] ?? lastId;
          yield frame;
          if (/^data: .*"type":"RUN_(FINISHED|ERROR)"/m.test(frame)) return;
        }
      }
    }
    const encoder = new TextEncoder();
    const body = ReadableStream.from(
      (async function* () {
        for await (const frame of frames()) yield encoder.encode(frame);
      })(),
    );
    return new Response(body, { status: first.status, headers: first.headers });
  };
}

// whole yields the whole frames of one connection until it ends or has sent allowance bytes.
async function* whole(response, allowance) {
  const decoder = new TextDecoder(); // one for each connection: a cut may be within a character
  const reader = response.body.getReader();
  let text = "";
  try {
    while (allowance > 0) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value.subarray(0, allowance), { stream: true });
      allowance -= value.length;
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) yield text.slice(0, end + 2);
    }
  } catch {
    // A broken connection has ended.
  } finally {
    await reader.cancel().catch(() => {});
  }
}
