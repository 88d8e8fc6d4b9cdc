import type { Tool } from "@ag-ui/client";
import { useSyncExternalStore } from "react";

/** A tool that this page declares to an agent, and whose calls its user answers. */
export interface ClientTool {
  tool: Tool;
  /** The JSON Schema of the result, for the form. The model does not receive it. */
  result?: unknown;
}

type ToolsByAgent = Record<string, readonly ClientTool[]>;

const storageKey = "perdure.clientTools";
const none: readonly ClientTool[] = [];
const declared = { tools: read(), listeners: new Set<() => void>() };

function read(): ToolsByAgent {
  try {
    const stored = JSON.parse(sessionStorage.getItem(storageKey) ?? "{}") as ToolsByAgent;
    return Array.isArray(stored) ? {} : stored;
  } catch {
    return {};
  }
}

/** Declares the tools of this tab to an agent. Other agents do not receive them. */
export function declareTools(agent: string, tools: readonly ClientTool[]): void {
  declared.tools = { ...declared.tools, [agent]: tools };
  sessionStorage.setItem(storageKey, JSON.stringify(declared.tools));
  for (const listener of declared.listeners) listener();
}

function subscribe(listener: () => void): () => void {
  declared.listeners.add(listener);
  return () => declared.listeners.delete(listener);
}

const toolsOf = (agent: string): readonly ClientTool[] => declared.tools[agent] ?? none;

/** Returns the tools that this tab declares with each message to an agent. */
export const useClientTools = (agent: string): readonly ClientTool[] => useSyncExternalStore(subscribe, () => toolsOf(agent));

/** Returns the schema of the results of a tool, if this tab has declared one. */
export const resultSchemaOf = (name: string): unknown => Object.values(declared.tools).flat().find(({ tool }) => tool.name === name)?.result;

/** Returns the tools that this tab declares to an agent, as an input has them. */
export const declaredTools = (agent: string): Tool[] => toolsOf(agent).map(({ tool }) => tool);
