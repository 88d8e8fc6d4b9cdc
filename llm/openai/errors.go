package openai

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// codes are the provider's words that say more than the status does. The
// words invalid_request_error and api_error are not among them, as they go
// with almost any status.
var codes = map[string]llm.Code{
	"authentication_error":           llm.CodeUnauthorized,
	"billing_hard_limit_reached":     llm.CodeQuotaExceeded,
	"bio_policy":                     llm.CodeContentFilter,
	"content_filter":                 llm.CodeContentFilter,
	"content_policy_violation":       llm.CodeContentFilter,
	"context_length_exceeded":        llm.CodeContextLength,
	"data_residency_mismatch":        llm.CodeInvalidRequest,
	"empty_image_file":               llm.CodeInvalidRequest,
	"failed_to_download_image":       llm.CodeInvalidRequest,
	"image_content_policy_violation": llm.CodeContentFilter,
	"image_file_not_found":           llm.CodeInvalidRequest,
	"image_file_too_large":           llm.CodeRequestTooLarge,
	"image_parse_error":              llm.CodeInvalidRequest,
	"image_too_large":                llm.CodeRequestTooLarge,
	"image_too_small":                llm.CodeInvalidRequest,
	"insufficient_quota":             llm.CodeQuotaExceeded,
	"invalid_api_key":                llm.CodeUnauthorized,
	"invalid_base64_image":           llm.CodeInvalidRequest,
	"invalid_image":                  llm.CodeInvalidRequest,
	"invalid_image_format":           llm.CodeInvalidRequest,
	"invalid_image_mode":             llm.CodeInvalidRequest,
	"invalid_image_url":              llm.CodeInvalidRequest,
	"invalid_prompt":                 llm.CodeInvalidRequest,
	"misalignment_policy_violation":  llm.CodeContentFilter,
	"model_not_found":                llm.CodeNotFound,
	"not_found_error":                llm.CodeNotFound,
	"overloaded_error":               llm.CodeUnavailable,
	"permission_error":               llm.CodeForbidden,
	"rate_limit_error":               llm.CodeRateLimited,
	"rate_limit_exceeded":            llm.CodeRateLimited,
	"server_error":                   llm.CodeUnavailable,
	"service_unavailable":            llm.CodeUnavailable,
	"string_above_max_length":        llm.CodeRequestTooLarge,
	"timeout":                        llm.CodeTimeout,
	"unsupported_image_media_type":   llm.CodeInvalidRequest,
}

// fault is an error as servers write it, in a body or in the stream.
type fault struct {
	code, kind, message string
}

// parseFault reads {"error": {…}}, {"error": "…"}, {"message": "…"},
// {"detail": …} and a list of one of them, and reports whether it found one.
func parseFault(data []byte) (fault, bool) {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil && len(list) > 0 {
		data = list[0]
	}
	var body struct {
		Error   json.RawMessage `json:"error"`
		Detail  json.RawMessage `json:"detail"`
		Message json.RawMessage `json:"message"`
	}
	if json.Unmarshal(data, &body) != nil {
		return fault{}, false
	}
	switch {
	case present(body.Error):
		return parseFaultObject(body.Error), true
	case present(body.Message):
		return parseFaultObject(data), true
	case present(body.Detail):
		return fault{message: text(body.Detail)}, true
	}
	return fault{}, false
}

func parseFaultObject(data json.RawMessage) fault {
	var object struct {
		Code    json.RawMessage `json:"code"`
		Type    json.RawMessage `json:"type"`
		Message json.RawMessage `json:"message"`
	}
	if json.Unmarshal(data, &object) != nil {
		return fault{message: text(data)}
	}
	return fault{code: text(object.Code), kind: text(object.Type), message: text(object.Message)}
}

func present(data json.RawMessage) bool { return len(data) > 0 && string(data) != "null" }

// text returns the string in data, or data itself: codes come as numbers too.
func text(data json.RawMessage) string {
	if !present(data) {
		return ""
	}
	var s string
	if json.Unmarshal(data, &s) == nil {
		return s
	}
	return string(data)
}

// meaning maps the words of the fault.
func (f fault) meaning() (llm.Code, bool) {
	for _, word := range []string{f.code, f.kind} {
		if code, ok := codes[strings.ToLower(word)]; ok {
			return code, true
		}
	}
	return "", false
}

// refused returns the error of a response with a status of 400 and above.
func (e *endpoint) refused(req *llm.Request, res *http.Response) *llm.Error {
	// A body that cannot be read takes nothing from what the status says.
	body, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	fault, _ := parseFault(body)
	code, ok := fault.meaning()
	if !ok {
		code = llm.CodeOfStatus(res.StatusCode)
	}
	message := wire.Quote(fault.message, req, e.config.APIKey)
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
func (e *endpoint) fault(req *llm.Request, f fault) *llm.Error {
	failure := &llm.Error{Code: llm.CodeUnavailable, Message: wire.Quote(f.message, req, e.config.APIKey)}
	if status, err := strconv.Atoi(f.code); err == nil && status >= 400 && status < 600 {
		failure.Status = status
		failure.Code = llm.CodeOfStatus(status)
	} else if f.kind == "invalid_request_error" {
		failure.Code = llm.CodeInvalidRequest
	}
	if code, ok := f.meaning(); ok {
		failure.Code = code
	}
	return failure
}
