import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { App } from "./app";
import { useRawLocation, useRawSearch } from "./raw_location";
import { SessionProvider } from "./session";
import { consolePath } from "./settings";
import "./styles/tokens.css";
import "./styles/base.css";
import { applyTheme } from "./theme";

applyTheme();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <Router base={consolePath} hook={useRawLocation} searchHook={useRawSearch}>
      <SessionProvider>
        <App />
      </SessionProvider>
    </Router>
  </StrictMode>,
);
