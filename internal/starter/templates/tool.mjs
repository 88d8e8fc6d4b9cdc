// The program of the tool __NAME__. Start it with: node __NAME__.mjs
import { createServer } from "node:http";

const orders = { "A-1001": { title: "A book", status: "shipped" }, "A-1002": { title: "A pen", status: "delayed" } };

const server = createServer((request, response) => {
  const id = request.url.split("/").at(-1);
  const order = orders[id];
  response.writeHead(order ? 200 : 404, { "Content-Type": "application/json" });
  response.end(JSON.stringify(order ?? { error: `There is no order ${id}.` }));
});

server.listen(8092, "127.0.0.1", () => console.log("__NAME__ listens on http://127.0.0.1:8092"));
