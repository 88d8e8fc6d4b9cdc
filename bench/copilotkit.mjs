// CopilotKit's runtime with its built-in agent, which stores nothing: one agent for each model, on any free
// port until stdin ends. Its first line of output is its address.
//
//   arguments: the directory with node_modules, then the names of the models
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [directory, ...models] = process.argv.slice(2);
const require = createRequire(join(directory, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

const { createOpenAI } = await load("@ai-sdk/openai");
const { BuiltInAgent, CopilotRuntime } = await load("@copilotkit/runtime/v2");
const { createCopilotExpressHandler } = await load("@copilotkit/runtime/v2/express");
const { default: express } = await load("express");

const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY });
const agents = Object.fromEntries(models.map((model) => [model, new BuiltInAgent({ model: openai.chat(model) })]));
const app = express();
app.use(createCopilotExpressHandler({ runtime: new CopilotRuntime({ agents }), basePath: "/v1" }));
const server = app.listen(0, "127.0.0.1", () => process.stdout.write(`http://127.0.0.1:${server.address().port}\n`));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
