import { build } from "esbuild";
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

// Returns the modules of this package, and the packages, of which the bundle of an import has code.
async function modulesOf(code: string): Promise<string[]> {
  const resolveDir = fileURLToPath(new URL("..", import.meta.url));
  const { metafile } = await build({ stdin: { contents: code, resolveDir }, bundle: true, write: false, metafile: true, format: "esm", treeShaking: true, logLevel: "silent" });
  const [output] = Object.values(metafile.outputs);
  return Object.entries(output!.inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([name]) => name);
}

const has = (modules: string[], part: string) => modules.some((name) => name.includes(part));

test("a bundle with PerdureClient has neither React nor the stores nor the agent", async () => {
  const modules = await modulesOf('import { PerdureClient } from "@perdure/client"; console.log(PerdureClient);');
  assert.ok(has(modules, "dist/client.js"));
  for (const part of ["react", "dist/store", "dist/agent.js", "node_modules/@ag-ui/client"]) assert.equal(has(modules, part), false, part);
});

test("a bundle with a store has no React", async () => {
  const modules = await modulesOf('import { threadStore } from "@perdure/client/store"; console.log(threadStore);');
  assert.ok(has(modules, "dist/store/thread_store.js"));
  assert.equal(has(modules, "react"), false);
});

test("a bundle with the hooks has React", async () => {
  const modules = await modulesOf('import { useThread } from "@perdure/client/react"; console.log(useThread);');
  assert.ok(has(modules, "dist/store/thread_store.js") && has(modules, "node_modules/react"));
});
