import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The client is bundled from its sources, so that the console needs no build of it.
const client = new URL("../clients/typescript/src/", import.meta.url).pathname;

export default defineConfig({
  base: "./", // internal/console/console.go makes the references of index.html absolute
  plugins: [react()],
  resolve: {
    alias: [
      { find: /^@perdure\/client$/, replacement: `${client}index.ts` },
      { find: /^@perdure\/client\/(store|react)$/, replacement: `${client}$1/index.ts` },
    ],
    dedupe: ["react", "@ag-ui/client"],
  },
  build: {
    outDir: "../internal/console/dist",
    emptyOutDir: true,
    manifest: "manifest.json",
    target: "es2022",
    assetsInlineLimit: 0, // the policy of the page loads styles and fonts of its own origin only
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    sourcemap: false,
    chunkSizeWarningLimit: 600,
  },
  server: { proxy: { "/v1": { target: "http://127.0.0.1:8080", ws: true }, "/auth": "http://127.0.0.1:8080" } },
});
