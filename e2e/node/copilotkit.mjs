// CopilotKit's runtime, installed in the working directory, with a stock HttpAgent in front of an
// AG-UI server, on any free port until stdin ends. Prints {"url"}.
//
//   argument: the URL of the agent's run endpoint
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

process.env.COPILOTKIT_TELEMETRY_DISABLED = "true";
const require = createRequire(join(process.cwd(), "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

const { HttpAgent } = await load("@ag-ui/client");
const { CopilotRuntime } = await load("@copilotkit/runtime/v2");
const { createCopilotExpressHandler } = await load("@copilotkit/runtime/v2/express");
const { default: express } = await load("express");

const runtime = new CopilotRuntime({ agents: { default: new HttpAgent({ url: process.argv[2] }) } });
const app = express();
app.use(createCopilotExpressHandler({ runtime, basePath: "/api" }));
const server = app.listen(0, "127.0.0.1", () => {
  process.stdout.write(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}/api` }) + "\n");
});
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
