package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// codes maps the API's error types. Missing are api_error and invalid_request_error: the HTTP
// status is as specific.
var codes = map[string]llm.Code{
	"authentication_error": llm.CodeUnauthorized,
	"billing_error":        llm.CodeQuotaExceeded,
	"not_found_error":      llm.CodeNotFound,
	"overloaded_error":     llm.CodeUnavailable,
	"permission_error":     llm.CodeForbidden,
	"rate_limit_error":     llm.CodeRateLimited,
	"request_too_large":    llm.CodeRequestTooLarge,
	"timeout_error":        llm.CodeTimeout,
}

// phrases map texts that only the message of an invalid_request_error contains.
var phrases = []struct {
	part string
	code llm.Code
}{
	{"prompt is too long", llm.CodeContextLength},
	{"exceed context limit", llm.CodeContextLength},
	{"credit balance is too low", llm.CodeQuotaExceeded},
	{"content filtering policy", llm.CodeContentFilter},
}

// parseFault parses {"type":"error","error":{"type":"…","message":"…"}}, and the form of gateways
// in which error is a string. It returns false if data has no error. The same object is the body of
// a failed request and the data of an error event.
func parseFault(data []byte) (wire.Fault, bool) {
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &body) != nil || !wire.IsPresent(body.Error) {
		return wire.Fault{}, false
	}
	var object struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	if json.Unmarshal(body.Error, &object) == nil {
		return wire.Fault{Message: object.Message, Code: codeOf(object.Type, object.Message), Invalid: object.Type == invalidRequest}, true
	}
	var text string
	_ = json.Unmarshal(body.Error, &text) // on failure, the message stays empty
	return wire.Fault{Message: text}, true
}

// invalidRequest is the API's error type for a request that it rejects.
const invalidRequest = "invalid_request_error"

// codeOf returns the code of an error type and message; "" if the HTTP status is as specific.
func codeOf(kind, message string) llm.Code {
	if code, ok := codes[kind]; ok {
		return code
	}
	for _, phrase := range phrases {
		if kind == invalidRequest && strings.Contains(message, phrase.part) {
			return phrase.code
		}
	}
	return ""
}
