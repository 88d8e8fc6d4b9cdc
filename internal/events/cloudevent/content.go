// Package cloudevent makes events of CloudEvents 1.0.
package cloudevent

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/events"
)

// InvalidError tells what is wrong with an event.
type InvalidError struct {
	// Pointer is the JSON pointer of the invalid member; "" = the event.
	Pointer string
	Reason  string
}

// Error implements error.
func (e *InvalidError) Error() string {
	if e.Pointer == "" {
		return "cloudevent: " + e.Reason
	}
	return fmt.Sprintf("cloudevent: %.100s %s", e.Pointer, e.Reason)
}

// DecodeJSON returns an event in the JSON format of CloudEvents (version 1.0.2), without its extension attributes. The
// decoder of the SDK panics at data_base64 that is no string, knows few media types of JSON, and depends on the order of
// the members. Errors: *InvalidError.
func DecodeJSON(event []byte) (*cloudevents.Event, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(event, &members) != nil || members == nil {
		return nil, &InvalidError{"", "must be a JSON object"}
	}
	if members["data"] != nil && members["data_base64"] != nil {
		return nil, &InvalidError{"/data_base64", "must be missing if the event has data: send either data or data_base64"}
	}
	var version string
	_ = json.Unmarshal(members["specversion"], &version)
	if err := checkVersion(version); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if reason := memberMistake(name, members[name]); reason != "" {
			return nil, &InvalidError{"/" + escapePointer.Replace(name), reason}
		}
	}
	text := func(name string) (value string) {
		_ = json.Unmarshal(members[name], &value) // memberMistake has checked it
		return value
	}
	out := cloudevents.New(cloudevents.CloudEventsVersionV1)
	out.SetID(text("id"))
	out.SetSource(text("source"))
	out.SetType(text("type"))
	out.SetSubject(text("subject"))
	out.SetDataContentType(text("datacontenttype"))
	out.SetDataSchema(text("dataschema"))
	if at, err := time.Parse(time.RFC3339, text("time")); err == nil {
		out.SetTime(at)
	}
	switch data := members["data"]; {
	case members["data_base64"] != nil:
		out.DataEncoded, _ = base64.StdEncoding.DecodeString(text("data_base64"))
	case data == nil || isJSON(out.DataMediaType()):
		out.DataEncoded = data
	case data[0] == '"':
		out.DataEncoded = []byte(text("data"))
	default:
		return nil, &InvalidError{"/data", "must be a string, because datacontenttype is not JSON"}
	}
	return &out, nil
}

// isJSON reports whether data with a media type are JSON; none is JSON, too.
func isJSON(mediaType string) bool {
	return mediaType == "" || strings.HasSuffix(mediaType, "/json") || strings.HasSuffix(mediaType, "+json")
}

// escapePointer escapes the name of a member for a JSON pointer (RFC 6901).
var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// memberMistake returns what is wrong with the type of a member of an event; "" = nothing. An attribute that
// is null is missing.
func memberMistake(name string, value json.RawMessage) string {
	var text string
	isNull := string(value) == "null"
	isText := json.Unmarshal(value, &text) == nil && !isNull
	switch name {
	case "":
		return "must have a name"
	case "data":
		return ""
	case "data_base64":
		if _, err := base64.StdEncoding.DecodeString(text); err != nil || !isText {
			return "must be a string in base64"
		}
	case "time":
		if _, err := time.Parse(time.RFC3339, text); !isNull && (err != nil || !isText) {
			return "must be a time such as 2026-05-04T09:00:00Z"
		}
	case "id", "source", "type", "subject", "datacontenttype", "dataschema":
		if !isText && !isNull {
			return "must be a string"
		}
	default:
		if value[0] == '{' || value[0] == '[' {
			return "must be a string, a number or a boolean, as every extension attribute"
		}
	}
	return ""
}

// DecodeBinary decodes a CloudEvent in the binary mode of HTTP, whose headers NATS has, too.
func DecodeBinary(header http.Header, data []byte) (*cloudevents.Event, error) {
	in, err := cehttp.NewEventFromHTTPRequest(&http.Request{Header: decodeHeader(header), Body: io.NopCloser(bytes.NewReader(data))})
	if err != nil {
		return nil, fmt.Errorf("cloudevent: %w", err)
	}
	return in, nil
}

// decodeHeader returns a header whose attributes (ce-*) are decoded, which the SDK does not do: first the
// quotes, then the percent-encoding (HTTP binding of CloudEvents 1.0.2, section 3.1.3.2). A value with an
// incomplete encoding is as it was.
func decodeHeader(header http.Header) http.Header {
	decoded := header.Clone()
	for name, values := range decoded {
		if !strings.HasPrefix(name, "Ce-") {
			continue
		}
		for i, value := range values {
			values[i] = decodeValue(value)
		}
	}
	return decoded
}

// decodeValue decodes the value of an attribute in a header.
func decodeValue(value string) string {
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		value = unescapeQuoted.ReplaceAllString(value[1:len(value)-1], "$1")
	}
	if text, err := url.PathUnescape(value); err == nil {
		return text
	}
	return value
}

// unescapeQuoted finds the escapes of a quoted string (RFC 9110, section 5.6.4).
var unescapeQuoted = regexp.MustCompile(`\\(.)`)

// checkVersion checks the attribute specversion. Errors: *InvalidError.
func checkVersion(version string) error {
	if version != cloudevents.CloudEventsVersionV1 {
		return &InvalidError{"/specversion", fmt.Sprintf("must be %q", cloudevents.CloudEventsVersionV1)}
	}
	return nil
}

// Content checks an event, and returns it as runs receive it. Errors: *InvalidError.
func Content(in *cloudevents.Event) (*events.Content, error) {
	if err := checkVersion(in.SpecVersion()); err != nil {
		return nil, err
	}
	if err := in.Validate(); err != nil {
		var attributes cloudevents.ValidationError
		if errors.As(err, &attributes) {
			for name, reason := range attributes {
				return nil, &InvalidError{"/" + name, reason.Error()}
			}
		}
		return nil, &InvalidError{"", "is not a valid CloudEvent"}
	}
	e := &events.Content{ID: in.ID(), Source: in.Source(), Type: in.Type(), Subject: in.Subject(), Time: in.Time()}
	for _, attribute := range [][2]string{{"id", e.ID}, {"source", e.Source}, {"type", e.Type}, {"subject", e.Subject}} {
		if reason := AttributeMistake(attribute[1]); reason != "" {
			return nil, &InvalidError{"/" + attribute[0], reason}
		}
	}
	data, err := dataOf(in)
	if err != nil {
		return nil, &InvalidError{"/data", "is not valid JSON, as datacontenttype says"}
	}
	if len(data) > events.MaxEvent {
		return nil, &InvalidError{"/data", fmt.Sprintf("must have at most %d bytes as JSON", events.MaxEvent)}
	}
	if agui.TooDeep(data) { // it could be stored inside other documents, but not be read again
		return nil, &InvalidError{"/data", fmt.Sprintf("is nested deeper than %d levels", agui.MaxDepth)}
	}
	e.Data = data
	return e, nil
}

// AttributeMistake returns what is wrong with the text of an attribute (CloudEvents 1.0.2, section 3.1, String); "" = nothing.
// JSON has U+FFFD in place of all bytes and surrogates that are no characters, so events with it could seem to be the
// same.
func AttributeMistake(text string) string {
	switch {
	case len(text) > events.MaxAttribute:
		return fmt.Sprintf("must have at most %d bytes", events.MaxAttribute)
	case strings.ContainsRune(text, utf8.RuneError):
		return "must be UTF-8, without U+FFFD and surrogates"
	case strings.ContainsFunc(text, unicode.IsControl):
		return "must have no control characters"
	}
	return ""
}

// dataOf returns the data of an event as JSON: JSON as it is, text in UTF-8 as a string, and everything else as a
// string in base64.
func dataOf(in *cloudevents.Event) (json.RawMessage, error) {
	data := in.Data()
	media, _, _ := mime.ParseMediaType(in.DataContentType())
	switch {
	case len(data) == 0:
		return nil, nil
	case isJSON(media):
		if !json.Valid(data) {
			return nil, errors.New("invalid JSON")
		}
		return data, nil
	case strings.HasPrefix(media, "text/") && utf8.Valid(data):
		return events.Encode(string(data))
	}
	return json.Marshal(data)
}
