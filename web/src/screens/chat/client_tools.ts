import type { Tool } from "@ag-ui/client";
import { useSyncExternalStore } from "react";

/** A tool that this page declares, and whose calls its user answers. */
export interface ClientTool {
  tool: Tool;
  /** The JSON Schema of the result, for the form. The model does not receive it. */
  result?: unknown;
}

const storageKey = "perdure.clientTools";
const none: readonly ClientTool[] = [];
const declared = { tools: read(), listeners: new Set<() => void>() };

function read(): readonly ClientTool[] {
  try {
    return JSON.parse(sessionStorage.getItem(storageKey) ?? "[]") as ClientTool[];
  } catch {
    return none;
  }
}

/** Declares the tools of this tab. */
export function declareTools(tools: readonly ClientTool[]): void {
  declared.tools = tools;
  sessionStorage.setItem(storageKey, JSON.stringify(tools));
  for (const listener of declared.listeners) listener();
}

function subscribe(listener: () => void): () => void {
  declared.listeners.add(listener);
  return () => declared.listeners.delete(listener);
}

/** Returns the tools that this tab declares with each message. */
export const useClientTools = (): readonly ClientTool[] => useSyncExternalStore(subscribe, () => declared.tools);

/** Returns the schema of the results of a tool, if this tab has declared one. */
export const resultSchemaOf = (name: string): unknown => declared.tools.find(({ tool }) => tool.name === name)?.result;

/** Returns the tools that this tab declares, as an input has them. */
export const declaredTools = (): Tool[] => declared.tools.map(({ tool }) => tool);
