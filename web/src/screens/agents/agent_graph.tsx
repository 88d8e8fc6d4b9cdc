import type { Agent } from "@perdure/client";
import PipelineGraph from "../../components/pipeline_graph";

/** The graph of a pipeline, without a run. */
export default function AgentGraph({ agent }: { agent: Agent }) {
  return <PipelineGraph label={`Steps of ${agent.name}`} steps={agent.steps ?? []} />;
}
