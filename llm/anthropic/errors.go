package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// codes are the API's words for what went wrong. The words api_error and
// invalid_request_error say less than the status does.
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

// phrases are what the message alone says of an invalid_request_error.
var phrases = []struct {
	part string
	code llm.Code
}{
	{"prompt is too long", llm.CodeContextLength},
	{"exceed context limit", llm.CodeContextLength},
	{"credit balance is too low", llm.CodeQuotaExceeded},
	{"content filtering policy", llm.CodeContentFilter},
}

// parseFault reads {"type":"error","error":{"type":"…","message":"…"}}, in which gateways write the
// error as a string.
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
	_ = json.Unmarshal(body.Error, &text) // anything else says nothing
	return wire.Fault{Message: text}, true
}

const invalidRequest = "invalid_request_error"

// codeOf returns what the provider's words mean; "" if they say no more than the status.
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
