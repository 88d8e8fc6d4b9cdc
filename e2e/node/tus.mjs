// Uploads a file with tus-js-client, and prints what it does as JSON lines. It only reports; the Go test
// checks.
//
//   in (stdin, one JSON document):
//     {endpoint, path: the file, headers, metadata, stops: offsets in the file, in order}
//   out: {type: "event", run: 0, event: {type: "PATCH", offset}}    a request begins at this offset
//        {type: "event", run: 0, event: {type: "STOPPED", at}}      no further byte follows until the connection breaks
//        {type: "event", run: 0, event: {type: "UPLOADED", upload, file}}
//        {type: "end", run: 0, outcome, error?}
import { createReadStream } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Transform } from "node:stream";
import { text } from "node:stream/consumers";

const require = createRequire(join(process.cwd(), "package.json"));
const tus = require("tus-js-client");

const { endpoint, path, headers, metadata, stops } = JSON.parse(await text(process.stdin));
const print = (line) => process.stdout.write(JSON.stringify({ run: 0, ...line }) + "\n");
const report = (event) => print({ type: "event", event });

// gate passes the body of a request that begins at an offset, up to the next stop.
function gate(body, offset) {
  const stop = stops.shift();
  let at = offset;
  const gated = new Transform({
    transform(chunk, _encoding, done) {
      if (stop === undefined || at + chunk.length <= stop) {
        at += chunk.length;
        done(null, chunk);
        return;
      }
      this.push(chunk.subarray(0, stop - at)); // and done is not called
      report({ type: "STOPPED", at: stop });
    },
  });
  gated.size = body.size; // tus-js-client makes it the Content-Length
  return body.pipe(gated);
}

const stack = new tus.DefaultHttpStack({});
const httpStack = {
  getName: () => "gated",
  createRequest(method, url) {
    const request = stack.createRequest(method, url);
    const send = request.send.bind(request);
    request.send = (body) => {
      if (!(body instanceof Readable)) return send(body);
      const offset = Number(request.getHeader("Upload-Offset"));
      report({ type: "PATCH", offset });
      return send(gate(body, offset));
    };
    return request;
  },
};

const upload = new tus.Upload(createReadStream(path), {
  endpoint,
  headers,
  metadata,
  httpStack,
  retryDelays: new Array(200).fill(100), // the server starts within this time
  onError: (error) => print({ type: "end", outcome: "rejected", error: error.message }),
  onSuccess: ({ lastResponse }) => {
    report({ type: "UPLOADED", upload: upload.url, file: lastResponse.getHeader("Upload-File") });
    print({ type: "end", outcome: "resolved" });
  },
});
upload.start();
