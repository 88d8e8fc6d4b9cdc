import { build } from "esbuild";
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

// Bundles an import as a page does.
function bundle(code: string, external: string[] = []) {
  const resolveDir = fileURLToPath(new URL("..", import.meta.url));
  return build({ stdin: { contents: code, resolveDir }, bundle: true, minify: true, write: false, metafile: true, format: "esm", external, logLevel: "silent" });
}

// Returns the modules of this package, and the packages, of which the bundle of an import has code.
async function modulesOf(code: string): Promise<string[]> {
  const { metafile } = await bundle(code);
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

// The sizes that the README names, in kilobytes.
const sizes: Record<string, number> = {
  'import { ProblemError } from "@perdure/client"; console.log(ProblemError);': 0.5,
  'import { PerdureClient } from "@perdure/client"; console.log(PerdureClient);': 15.5,
  'import { PerdureAgent } from "@perdure/client"; console.log(PerdureAgent);': 14.5,
  'import { useThread } from "@perdure/client/react"; console.log(useThread);': 17.5,
};

test("a page pays only for what it imports", async () => {
  for (const [code, largest] of Object.entries(sizes)) {
    const { outputFiles } = await bundle(code, ["@ag-ui/client", "react"]);
    const size = gzipSync(outputFiles![0]!.contents, { level: 9 }).length / 1000;
    assert.ok(size <= largest, `${code} needs ${size} kB, at most ${largest} kB were expected: change the table in the README, too`);
  }
});
