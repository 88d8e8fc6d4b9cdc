package gemini

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// codes maps the reasons and statuses of Google APIs. Missing are INVALID_ARGUMENT and INTERNAL:
// the HTTP status is as specific.
var codes = map[string]llm.Code{
	"API_KEY_INVALID":    llm.CodeUnauthorized, // a reason, with HTTP status 400
	"CANCELLED":          llm.CodeUnavailable,
	"DEADLINE_EXCEEDED":  llm.CodeTimeout,
	"NOT_FOUND":          llm.CodeNotFound,
	"PERMISSION_DENIED":  llm.CodeForbidden,
	"RESOURCE_EXHAUSTED": llm.CodeRateLimited,
	"UNAUTHENTICATED":    llm.CodeUnauthorized,
	"UNAVAILABLE":        llm.CodeUnavailable,
}

// tooLong is the text by which only the message of an INVALID_ARGUMENT reports a too long
// conversation.
const tooLong = "exceeds the maximum number of tokens"

// errorBody is the error object of Google APIs (google.rpc.Status).
type errorBody struct {
	Code    int    `json:"code"` // HTTP status
	Message string `json:"message"`
	Status  string `json:"status"` // name of the gRPC code
	Details []struct {
		Reason     string `json:"reason"`     // of a google.rpc.ErrorInfo
		RetryDelay string `json:"retryDelay"` // of a google.rpc.RetryInfo, such as "34s"
	} `json:"details"`
}

// parseFault parses {"error":{…}}, or a list with that object, which the API returns for streaming
// requests. It returns false if data has no error.
func parseFault(data []byte) (wire.Fault, bool) {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil && len(list) > 0 {
		data = list[0]
	}
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &body) != nil || !wire.IsPresent(body.Error) {
		return wire.Fault{}, false
	}
	var e errorBody
	if json.Unmarshal(body.Error, &e) != nil {
		e = errorBody{}
		// Gateways send a string. On failure, the message stays empty.
		_ = json.Unmarshal(body.Error, &e.Message)
	}
	fault := wire.Fault{Message: e.Message, Code: e.meaning(), RetryAfter: e.retryDelay()}
	if e.Code >= 400 && e.Code < 600 {
		fault.Status = e.Code
	}
	return fault, true
}

// meaning returns the code of an error; "" if the HTTP status is as specific. A reason is more
// specific than the status.
func (e errorBody) meaning() llm.Code {
	for _, detail := range e.Details {
		if code, ok := codes[detail.Reason]; ok {
			return code
		}
	}
	if e.Status == "INVALID_ARGUMENT" && strings.Contains(e.Message, tooLong) {
		return llm.CodeContextLength
	}
	return codes[e.Status]
}

// retryDelay returns the delay that the details request, at most 24 hours; 0 = none.
func (e errorBody) retryDelay() time.Duration {
	for _, detail := range e.Details {
		if delay, err := time.ParseDuration(detail.RetryDelay); err == nil && delay > 0 {
			return min(delay, 24*time.Hour)
		}
	}
	return 0
}

// blocked returns the error of a prompt that the provider refuses to answer.
func (m *Model) blocked(req *llm.Request, e event) *llm.Error {
	message := e.Feedback.Message
	if message == "" {
		message = "the prompt is blocked: " + e.Feedback.BlockReason
	}
	return &llm.Error{Code: llm.CodeContentFilter, Message: wire.Quote(message, req, m.config.APIKey)}
}
