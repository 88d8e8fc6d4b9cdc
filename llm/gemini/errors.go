package gemini

import (
	"encoding/json"
	"io"
	"net/http"
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

// fault is an error as the API writes it, in a body or in the stream.
type fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status"`
	Details []struct {
		Reason     string `json:"reason"`     // of an ErrorInfo
		RetryDelay string `json:"retryDelay"` // of a RetryInfo, such as "34s"
	} `json:"details"`
}

// parseFault reads {"error":{…}}, or a list of one of them, and reports whether
// data is that.
func parseFault(data []byte) (fault, bool) {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil && len(list) > 0 {
		data = list[0]
	}
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &body) != nil || !present(body.Error) {
		return fault{}, false
	}
	var f fault
	if json.Unmarshal(body.Error, &f) != nil {
		f = fault{}
		_ = json.Unmarshal(body.Error, &f.Message) // by gateways; anything else says nothing
	}
	return f, true
}

func present(data json.RawMessage) bool { return len(data) > 0 && string(data) != "null" }

// meaning maps the words of the fault.
func (f fault) meaning() (llm.Code, bool) {
	for _, detail := range f.Details {
		if code, ok := codes[detail.Reason]; ok {
			return code, true
		}
	}
	if f.Status == "INVALID_ARGUMENT" && strings.Contains(f.Message, tooLong) {
		return llm.CodeContextLength, true
	}
	code, ok := codes[f.Status]
	return code, ok
}

// retryAfter returns the wish of the header, or of the body, where Google has it.
func (f fault) retryAfter(header http.Header) time.Duration {
	if wish := wire.RetryAfter(header, time.Now()); wish > 0 {
		return wish
	}
	for _, detail := range f.Details {
		if delay, err := time.ParseDuration(detail.RetryDelay); err == nil && delay > 0 {
			return min(delay, 24*time.Hour)
		}
	}
	return 0
}

// refused returns the error of a response with a status of 400 and above.
func (m *Model) refused(req *llm.Request, res *http.Response) *llm.Error {
	// A body that cannot be read takes nothing from what the status says.
	body, _ := io.ReadAll(res.Body)
	fault, _ := parseFault(body)
	code, ok := fault.meaning()
	if !ok {
		code = llm.CodeOfStatus(res.StatusCode)
	}
	message := wire.Quote(fault.Message, req, m.config.APIKey)
	if message == "" {
		message = http.StatusText(res.StatusCode)
	}
	return &llm.Error{Code: code, Status: res.StatusCode, RetryAfter: fault.retryAfter(res.Header), Message: message}
}

// fault returns the error of a fault inside a response that began well.
func (m *Model) fault(req *llm.Request, f fault) *llm.Error {
	failure := &llm.Error{Code: llm.CodeUnavailable, Message: wire.Quote(f.Message, req, m.config.APIKey), RetryAfter: f.retryAfter(nil)}
	if f.Code >= 400 && f.Code < 600 {
		failure.Status = f.Code
		failure.Code = llm.CodeOfStatus(f.Code)
	}
	if code, ok := f.meaning(); ok {
		failure.Code = code
	}
	return failure
}

// blocked returns the error of a prompt that the provider does not answer.
func (m *Model) blocked(req *llm.Request, e event) *llm.Error {
	message := e.Feedback.Message
	if message == "" {
		message = "the prompt is blocked: " + e.Feedback.BlockReason
	}
	return &llm.Error{Code: llm.CodeContentFilter, Message: wire.Quote(message, req, m.config.APIKey)}
}
