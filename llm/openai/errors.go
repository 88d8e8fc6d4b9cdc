package openai

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// codes maps the error codes and types that are more specific than the HTTP status. Missing are
// invalid_request_error and api_error, which appear with almost any status.
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

// parseFault parses the error bodies of OpenAI and compatible servers: {"error": {…}}, {"error":
// "…"}, {"message": "…"}, {"detail": …}, and a list whose first element is one of them. It returns
// false if data has no error.
func parseFault(data []byte) (wire.Fault, bool) {
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
		return wire.Fault{}, false
	}
	switch {
	case wire.IsPresent(body.Error):
		return faultOf(body.Error), true
	case wire.IsPresent(body.Message):
		return faultOf(data), true
	case wire.IsPresent(body.Detail):
		return wire.Fault{Message: text(body.Detail)}, true
	}
	return wire.Fault{}, false
}

// faultOf converts the value of an error member, which is an object or a string. The code is more
// specific than the type. A numeric code is an HTTP status.
func faultOf(data json.RawMessage) wire.Fault {
	var object struct {
		Code    json.RawMessage `json:"code"`
		Type    json.RawMessage `json:"type"`
		Message json.RawMessage `json:"message"`
	}
	if json.Unmarshal(data, &object) != nil {
		return wire.Fault{Message: text(data)}
	}
	code, kind := text(object.Code), text(object.Type)
	fault := wire.Fault{Message: text(object.Message), Invalid: kind == "invalid_request_error"}
	if status, err := strconv.Atoi(code); err == nil && status >= 400 && status < 600 {
		fault.Status = status
	}
	// An unknown code leaves the decision to the type, and an unknown type to the HTTP status.
	if fault.Code = codes[strings.ToLower(code)]; fault.Code == "" {
		fault.Code = codes[strings.ToLower(kind)]
	}
	return fault
}

// text returns the value of a JSON string, or the raw JSON of another value, since servers send
// codes as numbers too. It returns "" for null.
func text(data json.RawMessage) string {
	if !wire.IsPresent(data) {
		return ""
	}
	var s string
	if json.Unmarshal(data, &s) == nil {
		return s
	}
	return string(data)
}
