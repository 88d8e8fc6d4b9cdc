package gemini

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// codes are Google's words for what went wrong. INVALID_ARGUMENT and INTERNAL
// say no more than the status does.
var codes = map[string]llm.Code{
	"API_KEY_INVALID":    llm.CodeUnauthorized, // comes with the status 400
	"CANCELLED":          llm.CodeUnavailable,
	"DEADLINE_EXCEEDED":  llm.CodeTimeout,
	"NOT_FOUND":          llm.CodeNotFound,
	"PERMISSION_DENIED":  llm.CodeForbidden,
	"RESOURCE_EXHAUSTED": llm.CodeRateLimited,
	"UNAUTHENTICATED":    llm.CodeUnauthorized,
	"UNAVAILABLE":        llm.CodeUnavailable,
}

// tooLong is what the message alone says of an INVALID_ARGUMENT.
const tooLong = "exceeds the maximum number of tokens"

// errorBody is an error of the API.
type errorBody struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status"`
	Details []struct {
		Reason     string `json:"reason"`     // of an ErrorInfo
		RetryDelay string `json:"retryDelay"` // of a RetryInfo, such as "34s"
	} `json:"details"`
}

// parseFault reads {"error":{…}}, or a list of one of them.
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
		_ = json.Unmarshal(body.Error, &e.Message) // by gateways; anything else says nothing
	}
	fault := wire.Fault{Message: e.Message, Code: e.meaning(), RetryAfter: e.retryDelay()}
	if e.Code >= 400 && e.Code < 600 {
		fault.Status = e.Code
	}
	return fault, true
}

// meaning returns what Google's words mean; "" if they say no more than the status.
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

// retryDelay returns the pause that the details ask for; 0 = none.
func (e errorBody) retryDelay() time.Duration {
	for _, detail := range e.Details {
		if delay, err := time.ParseDuration(detail.RetryDelay); err == nil && delay > 0 {
			return min(delay, 24*time.Hour)
		}
	}
	return 0
}

// blocked returns the error of a prompt that the provider does not answer.
func (m *Model) blocked(req *llm.Request, e event) *llm.Error {
	message := e.Feedback.Message
	if message == "" {
		message = "the prompt is blocked: " + e.Feedback.BlockReason
	}
	return &llm.Error{Code: llm.CodeContentFilter, Message: wire.Quote(message, req, m.config.APIKey)}
}
