// CopilotKit's runtime with Perdure's runner, both installed in the working directory, until stdin ends. It
// also serves a folder of pages. Prints {"url"}.
//
//   argument: {baseUrl, port, agents, headers, pages} in JSON. The default of port is any free port.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.cwd(), "package.json"));
const load = (path) => import(pathToFileURL(path).href);

const { perdureAgents, PerdureAgentRunner } = await load(join(process.cwd(), "node_modules/@perdure/copilotkit/dist/index.js"));
const { CopilotRuntime } = await load(require.resolve("@copilotkit/runtime/v2").replace(/\.cjs$/, ".mjs"));
const { createCopilotExpressHandler } = await load(require.resolve("@copilotkit/runtime/v2/express").replace(/\.cjs$/, ".mjs"));
const { default: express } = await load(require.resolve("express"));

const { baseUrl, port = 0, agents, headers, pages } = JSON.parse(process.argv[2]);
const perdure = { baseUrl, headers };
const runtime = new CopilotRuntime({ agents: perdureAgents({ ...perdure, agents }), runner: new PerdureAgentRunner(perdure) });
const app = express();
if (pages) app.use(express.static(pages));
app.use(createCopilotExpressHandler({ runtime, basePath: "/api" }));
const server = app.listen(port, "127.0.0.1", () => {
  process.stdout.write(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}` }) + "\n");
});
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
