import react from "@vitejs/plugin-react";
import { existsSync, readdirSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { defineConfig, type PreviewServer, type ViteDevServer } from "vite";

// A feature is a folder with a page.
const features = readdirSync(import.meta.dirname).filter((name) => name !== "dist" && existsSync(resolve(import.meta.dirname, name, "index.html")));
const page = (folder: string) => resolve(import.meta.dirname, folder, "index.html");

/** Serves service.mjs of each feature, which HTTP tools of its agent call, at /services/<feature>. */
async function serve({ middlewares }: ViteDevServer | PreviewServer) {
  for (const feature of features) {
    const file = resolve(import.meta.dirname, feature, "service.mjs");
    if (existsSync(file)) middlewares.use(`/services/${feature}`, (await import(pathToFileURL(file).href)).default);
  }
}

// The pages and the API have one origin: Vite forwards the API to Perdure.
const proxy = { "/v1": { target: process.env.PERDURE_URL ?? "http://127.0.0.1:8080", ws: true } };

// The definitions of HTTP tools name this address.
const address = { host: "127.0.0.1", port: 5173, strictPort: true };

export default defineConfig({
  plugins: [react(), { name: "services", configureServer: serve, configurePreviewServer: serve }],
  appType: "mpa",
  resolve: { dedupe: ["react", "@ag-ui/client"] }, // @perdure/client is a link to clients/typescript, which has its own
  build: { rollupOptions: { input: ["", ...features].map(page) } },
  server: { ...address, proxy },
  preview: { ...address, proxy },
});
