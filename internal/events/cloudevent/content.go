// Package cloudevent makes events of CloudEvents 1.0.
package cloudevent

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

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

// Content checks an event, and returns it as runs receive it. Errors: *InvalidError.
func Content(in *cloudevents.Event) (*events.Content, error) {
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
		if len(attribute[1]) > events.MaxAttribute {
			return nil, &InvalidError{"/" + attribute[0], fmt.Sprintf("must have at most %d bytes", events.MaxAttribute)}
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

// dataOf returns the data of an event as JSON: JSON as it is, text as a string, and everything else as a
// string in base64.
func dataOf(in *cloudevents.Event) (json.RawMessage, error) {
	data := in.Data()
	media, _, _ := mime.ParseMediaType(in.DataContentType())
	switch {
	case len(data) == 0:
		return nil, nil
	case media == "" || media == "application/json" || strings.HasSuffix(media, "+json"):
		if !json.Valid(data) {
			return nil, errors.New("invalid JSON")
		}
		return data, nil
	case strings.HasPrefix(media, "text/"):
		return json.Marshal(string(data))
	}
	return json.Marshal(data)
}
