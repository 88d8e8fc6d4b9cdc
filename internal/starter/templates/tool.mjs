// The program of the tool __NAME__. Start it with: node __NAME__.mjs
import { createServer } from "node:http";

const orders = { "A-1001": "shipped", "A-1002": "delayed" };

// The model receives the text of the response. After a status of 400 or more, it receives the status too.
const server = createServer((request, response) => {
  const id = decodeURIComponent(request.url.split("/").at(-1));
  const status = orders[id];
  response.writeHead(status ? 200 : 404, { "Content-Type": "text/plain; charset=utf-8" });
  response.end(status ? `Order ${id} is ${status}.` : `There is no order ${id}.`);
});

server.listen(8092, "127.0.0.1", () => console.log("__NAME__ listens on http://127.0.0.1:8092"));
