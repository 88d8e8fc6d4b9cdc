// CopilotKit's runtime, installed in the working directory, with a stock HttpAgent for each agent of an
// AG-UI server, on any free port until stdin ends. Prints {"url"}.
//
//   arguments: pairs of an agent's name and the URL of its run endpoint
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.cwd(), "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

const { HttpAgent } = await load("@ag-ui/client");
const { CopilotRuntime } = await load("@copilotkit/runtime/v2");
const { createCopilotExpressHandler } = await load("@copilotkit/runtime/v2/express");
const { default: express } = await load("express");

const agents = {};
for (const [i, name] of process.argv.entries()) {
  if (i >= 2 && i % 2 === 0) agents[name] = new HttpAgent({ url: process.argv[i + 1] });
}
const runtime = new CopilotRuntime({ agents });
const app = express();
app.use(createCopilotExpressHandler({ runtime, basePath: "/api" }));
const server = app.listen(0, "127.0.0.1", () => {
  process.stdout.write(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}/api` }) + "\n");
});
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
