package trace

// hints tell what to do about errors, by their codes. Those of models come with the failure.
var hints = map[string]string{
	"agent_unavailable":        "Publish the agent, or correct the name in the definition.",
	"approval_expired":         "Run again, and let the approval escalate before it expires.",
	"budget_exceeded":          "Wait for the next day (UTC), or raise the budget of the tenant.",
	"circuit_open":             "Check the status of the provider: calls of the model have failed one after the other, and are tried again soon.",
	"conflict":                 "Nothing: the provider still works on the same request, and the call is repeated.",
	"content_filter":           "Change the content, or use a model with another filter.",
	"context_length":           "Set context.maxTokens in the definition, so that older messages are summarized or left out.",
	"conversation_changed":     "Send the input again, with the messages that the thread has now.",
	"failed":                   "Read the message, and the log of the worker.",
	"forbidden":                "Check the permissions of the worker's API key at the provider.",
	"input_too_large":          "Pass less to the step: the messages that it needs, or references to large data.",
	"internal":                 "Read the log of the workers, and report the error: it is a defect.",
	"invalid_expression":       "Correct the expression or the template that the message names. It may meet a value that is missing.",
	"invalid_output":           "Describe the output in the instructions of the agent, or relax its schema.",
	"invalid_patch":            "Correct the change of the state: the message tells why it does not apply.",
	"invalid_request":          "Compare the model options of the definition with what the provider accepts for this model.",
	"invalid_step":             "Correct the step that the program asks for: the message tells what is wrong.",
	"length":                   "Ask for a shorter answer, or use a model that writes longer ones.",
	"limit_compensations":      "Divide the pipeline, so that a run has fewer finished steps with a compensate.",
	"limit_cost":               "Raise limits.cost in the definition.",
	"limit_duration":           "Raise limits.duration in the definition.",
	"limit_items":              "Pass fewer items to the map, or divide them into several runs.",
	"limit_parallel_tools":     "Let the model call fewer tools in one turn, or raise limits.parallelTools in the definition.",
	"limit_steps":              "Check the loops of the pipeline: they go on without a call or a wait.",
	"limit_subagents":          "Divide the work into several runs, or nest fewer pipelines.",
	"limit_tokens":             "Raise limits.tokens in the definition.",
	"limit_turns":              "Raise limits.turns in the definition.",
	"log_lost":                 "Restore NATS and Temporal's database from backups of the same time.",
	"log_unavailable":          "Check NATS: the attempt is repeated when the log is available again.",
	"malformed_response":       "Check that the base URL of the provider is that of its API, and not of a proxy or a page.",
	"not_found":                "Correct the name of the model in the definition, or the base URL of its provider.",
	"output_too_large":         "Return less from the step: references to large data, for instance.",
	"price_unknown":            "Add the model to the prices of the workers, or remove the limit of costs.",
	"program_failed":           "Look at the workflow in Temporal's UI, and at the log of the program's worker.",
	"program_unknown":          "Start workers that have the program registered.",
	"provider_busy":            "Wait: the call is repeated. If it waits for a limit of the workers, raise PERDURE_MODEL_LIMITS.",
	"quota_exceeded":           "Add credit at the provider.",
	"rate_limited":             "Wait, or raise the rate limit at the provider.",
	"rejected":                 "Read the reason of the decision, change the input, and run again.",
	"remote_call_invalid":      "Correct remote in the definition, or set the secret that the message names for the workers.",
	"remote_connection_broken": "Run again. If a repeated run does no harm, set remote.retry to restart in the definition.",
	"remote_failed":            "Read the log of the agent's server.",
	"remote_forbidden":         "Correct remote.url in the definition, or allow the address: PERDURE_ALLOW_PRIVATE_HOSTS for private ones.",
	"remote_not_events":        "Check that remote.url is the address of an AG-UI endpoint, and not of a page.",
	"remote_protocol_error":    "Report the rule that the message names to the agent's framework: its stream is not valid AG-UI.",
	"remote_rejected":          "Check the address and the headers in remote, and set remote.protocol to 0.x for a server that refuses protocolVersion.",
	"remote_run_failed":        "Read the message of the agent, and the log of its server.",
	"remote_silent":            "Check whether the agent's server hangs, or raise PERDURE_MODEL_SILENCE.",
	"remote_too_large":         "Let the agent send less: fewer events, or references to large data.",
	"remote_truncated":         "Check the agent's server, and the proxies in between: the stream ended before the run did.",
	"remote_unavailable":       "Wait: the run is attempted again, after the time that the agent's server asks for.",
	"remote_unreachable":       "Start the agent's server, or correct remote.url in the definition.",
	"request_too_large":        "Send less: fewer or smaller files, or a smaller context.maxTokens in the definition.",
	"response_too_large":       "Ask the model for less, or limit its output in the model options of the definition.",
	"timeout":                  "Check whether the provider or the server of the tool is overloaded, or the sender of the awaited event; or raise the timeout of the step.",
	"tool_failed":              "Look at the arguments and the result of the call, and at the tool's server.",
	"tool_unavailable":         "Start a worker that has the tool, or check the tool's server.",
	"truncated":                "The connection to the provider broke. If it breaks again, check the network and the proxies in between.",
	"unauthorized":             "Set a valid API key of the provider for the workers.",
	"unavailable":              "Check the status of the provider: the call is repeated meanwhile.",
	"worker_lost":              "Check the worker's log and its memory: another worker repeats the attempt.",
	"worker_stopped":           "Nothing: another worker continues the run.",
	"workflow_cancelled":       hintClosed,
	"workflow_completed":       hintClosed,
	"workflow_failed":          hintClosed,
	"workflow_lost":            "Check whether Temporal's database was restored or replaced. Run again, or fork the run after its last step.",
	"workflow_terminated":      hintClosed,
	"workflow_timed_out":       hintClosed,
}

// hintClosed is the hint if the workflow of a run was closed from outside.
const hintClosed = "Look at the end of the workflow in Temporal's UI. Run again, or fork the run after its last step."

// newError returns an error with the hint of its code; hint is the failure's own, "" = none.
func newError(code, message, hint string) *Error {
	if hint == "" {
		hint = hints[code]
	}
	return &Error{Code: code, Message: message, Hint: hint}
}
