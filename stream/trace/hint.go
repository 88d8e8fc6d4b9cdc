package trace

// hints tell what to do about errors, by their codes. Those of models come with the failure.
var hints = map[string]string{
	"agent_unavailable": "Publish the agent, or correct the name in the definition.",
	"budget_exceeded":   "Wait for the next day (UTC), or raise the budget of the tenant.",
	"content_filter":    "Change the content, or use a model with another filter.",
	"context_length":    "Set context.maxTokens in the definition, so that older messages are summarized or left out.",
	"forbidden":         "Check the permissions of the worker's API key at the provider.",
	"limit_cost":        "Raise limits.cost in the definition.",
	"limit_duration":    "Raise limits.duration in the definition.",
	"limit_tokens":      "Raise limits.tokens in the definition.",
	"limit_turns":       "Raise limits.turns in the definition.",
	"log_unavailable":   "Check NATS: the attempt is repeated when the log is available again.",
	"not_found":         "Correct the name of the model in the definition, or the base URL of its provider.",
	"price_unknown":     "Add the model to the prices of the workers, or remove the limit of costs.",
	"quota_exceeded":    "Add credit at the provider.",
	"rate_limited":      "Wait, or raise the rate limit at the provider.",
	"timeout":           "Check whether the provider or the server of the tool is overloaded.",
	"tool_unavailable":  "Start a worker that has the tool, or check the tool's server.",
	"unauthorized":      "Set a valid API key of the provider for the workers.",
	"unavailable":       "Check the status of the provider: the call is repeated meanwhile.",
	"worker_lost":       "Check the worker's log and its memory: another worker repeats the attempt.",
	"worker_stopped":    "Nothing: another worker continues the run.",
}

// newError returns an error with the hint of its code; hint is the failure's own, "" = none.
func newError(code, message, hint string) *Error {
	if hint == "" {
		hint = hints[code]
	}
	return &Error{Code: code, Message: message, Hint: hint}
}
