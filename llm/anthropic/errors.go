package anthropic

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

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

// fault is an error as the API writes it, in a body or in the stream.
type fault struct {
	kind, message string
}

// parseFault reads {"type":"error","error":{"type":"…","message":"…"}} and
// reports whether data is that. Gateways write the error as a bare string.
func parseFault(data []byte) (fault, bool) {
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &body) != nil || len(body.Error) == 0 || string(body.Error) == "null" {
		return fault{}, false
	}
	var object struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	if json.Unmarshal(body.Error, &object) == nil {
		return fault{kind: object.Type, message: object.Message}, true
	}
	var text string
	_ = json.Unmarshal(body.Error, &text) // anything else says nothing
	return fault{message: text}, true
}

// meaning maps the words of the fault.
func (f fault) meaning() (llm.Code, bool) {
	if code, ok := codes[f.kind]; ok {
		return code, true
	}
	if f.kind != "invalid_request_error" {
		return "", false
	}
	for _, phrase := range phrases {
		if strings.Contains(f.message, phrase.part) {
			return phrase.code, true
		}
	}
	return "", false
}

// refused returns the error of a response with a status of 400 and above.
func (m *Model) refused(req *llm.Request, res *http.Response) *llm.Error {
	// A body that cannot be read takes nothing from what the status says.
	body, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	fault, _ := parseFault(body)
	code, ok := fault.meaning()
	if !ok {
		code = llm.CodeOfStatus(res.StatusCode)
	}
	message := wire.Quote(fault.message, req, m.config.APIKey)
	if message == "" {
		message = http.StatusText(res.StatusCode)
	}
	return &llm.Error{
		Code:       code,
		Status:     res.StatusCode,
		RetryAfter: wire.RetryAfter(res.Header, time.Now()),
		Message:    message,
	}
}

// fault returns the error of a fault inside a response that began well.
func (m *Model) fault(req *llm.Request, f fault) *llm.Error {
	failure := &llm.Error{Code: llm.CodeUnavailable, Message: wire.Quote(f.message, req, m.config.APIKey)}
	if f.kind == "invalid_request_error" {
		failure.Code = llm.CodeInvalidRequest
	}
	if code, ok := f.meaning(); ok {
		failure.Code = code
	}
	return failure
}
