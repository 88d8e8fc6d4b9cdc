import type { TraceError } from "./trace";

// What to do about errors for which the server has no hint, because it depends on the tool or on people.
const hints: Record<string, string> = {
  tool_failed: "Look at the arguments and the result of the call, and at the tool's server.",
  truncated: "The connection to the provider broke. If it breaks again and again, check the network and the proxies between the workers and the provider.",
  malformed_response: "Check that the provider's base URL is that of its API, and not that of a proxy or a page.",
  invalid_request: "Compare the definition's model options with what the provider accepts for this model.",
  rejected: "Read the reason of the decision, change the input, and run again.",
  approval_expired: "Run again, and let the approval escalate before it expires.",
  limit_parallel_tools: "Let the model call fewer tools in one turn, or raise limits.parallelTools in the definition.",
  program_failed: "Look at the workflow in Temporal's UI and at the log of the program's worker.",
  internal: "Look at the log of the workers, and report the error to its operators.",
};

/** Returns what to do about an error; undefined if nothing is known. */
export const hintOf = ({ hint, code }: TraceError): string | undefined => hint || hints[code];
