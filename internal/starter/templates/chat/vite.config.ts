import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The page and the API have one origin: Vite forwards the API to Perdure.
const target = process.env.PERDURE_URL ?? "http://127.0.0.1:8080";
const proxy = { "/v1": { target, ws: true } };

export default defineConfig({ plugins: [react()], server: { proxy }, preview: { proxy } });
