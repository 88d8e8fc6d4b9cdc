// Follows a run over WebSockets with the npm package ws, checks the events with the reference client, and
// prints them as JSON lines. It only reports; the Go tests check. Whenever a socket ends before the run
// does, it continues after the last cursor on another one.
//
//   in (stdin, one JSON document):
//     {addresses: the file with the server's addresses, agent, input,
//      cut: the number of events after which the first socket is cut}
//   out: {type: "event", run, cursor, event: as the server wrote it} …
//        {type: "end", run, outcome, error?, sockets}   {type: "closed", code}   of the last socket
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";

const require = createRequire(join(process.cwd(), "package.json"));
const { WebSocket } = require("ws");
const { Subject } = require("rxjs");
const { verifyEvents } = require("@ag-ui/client");

const say = (line) => process.stdout.write(line + "\n");
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const { addresses, agent, input, cut } = JSON.parse(await text(process.stdin));

const end = { type: "end", run: 0, outcome: "resolved", sockets: 0 };
const events = new Subject();
const checked = new Promise((resolve, reject) => {
  events.pipe(verifyEvents(false)).subscribe({ error: reject, complete: resolve });
});
checked.catch((error) => Object.assign(end, { outcome: "rejected", error: error.message }));

const member = ',"event":';
let cursor;
let count = 0;
let over = false;

// follow reads one socket and resolves to its close code.
async function follow() {
  const { api } = JSON.parse(await readFile(addresses, "utf8"));
  const socket = new WebSocket(api.replace(/^http/, "ws") + "/v1/ws", "ag-ui.perdure.v1");
  const { threadId, runId } = input;
  socket.on("open", () => {
    end.sockets++;
    const request = cursor ? { type: "subscribe", threadId, runId, after: cursor } : { type: "run", agent, input };
    socket.send(JSON.stringify({ id: "1", ...request }));
  });
  socket.on("message", (data) => {
    if (socket.readyState !== WebSocket.OPEN) return; // ws delivers what it has read before the cut
    const line = data.toString();
    const frame = JSON.parse(line);
    if (frame.type === "event") {
      cursor = frame.cursor;
      const event = line.slice(line.indexOf(member) + member.length, -1); // it is the last member
      say(`{"type":"event","run":0,"cursor":"${cursor}","event":${event}}`);
      events.next(frame.event);
      if (++count === cut) socket.terminate();
    } else if (frame.type === "end") {
      over = true;
      events.complete();
      checked.catch(() => {}).then(() => say(JSON.stringify(end)));
    } else if (frame.type === "error" && frame.status !== 503) {
      Object.assign(end, { outcome: "rejected", error: `${frame.code}: ${frame.detail}` });
      over = true;
      say(JSON.stringify(end));
      socket.close();
    } else if (frame.type === "error") {
      socket.close(); // and reconnect
    }
  });
  socket.on("error", () => {}); // the socket closes after an error
  return new Promise((resolve) => socket.on("close", resolve));
}

while (!over) {
  const code = await follow().catch(() => undefined); // no addresses: no server runs
  if (over) say(JSON.stringify({ type: "closed", code }));
  else await pause(20);
}
