import type { Agent } from "@perdure/client";

/** The graph of a pipeline, without a run. */
export default function AgentGraph(_: { agent: Agent }) {
  return null;
}
