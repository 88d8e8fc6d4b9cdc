package source

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/internal/events/cloudevent"
)

// subjectSource begins the source of an event that is no CloudEvent, which the subject ends.
const subjectSource = "/nats/"

// delivery is a message of a subject.
type delivery struct {
	subject string
	header  nats.Header
	data    []byte
	// position identifies the message in its stream; "" = it is in none.
	position string
}

// event returns the event of a message: a CloudEvent in the binary or structured form, or else JSON.
// Errors: *ContentError.
func (s *Source) event(d delivery) (*events.Event, error) {
	if len(d.data) > events.MaxEvent {
		return nil, &ContentError{fmt.Sprintf("must have at most %d bytes", events.MaxEvent)}
	}
	header := http.Header{}
	for name, values := range d.header {
		if len(values) > 0 {
			header.Set(name, values[0])
		}
	}
	isStructured := strings.HasPrefix(header.Get("Content-Type"), "application/cloudevents")
	if !isStructured && header.Get("ce-specversion") == "" && membersOf(d.data).text("specversion") != "" {
		header.Set("Content-Type", "application/cloudevents+json") // the default of the NATS binding of CloudEvents
		isStructured = true
	}
	content := &events.Content{ID: d.id(), Source: subjectSource + d.subject, Type: s.Name, Data: slices.Clone(d.data)}
	if isStructured || header.Get("ce-specversion") != "" {
		var err error
		if content, err = cloudEvent(header, d.data, isStructured); err != nil {
			return nil, err
		}
	} else if agui.TooDeep(d.data) { // before json.Valid, as in Set.receive
		return nil, errTooDeep
	} else if !json.Valid(d.data) {
		return nil, &ContentError{"must be a CloudEvent or JSON"}
	}
	for _, attribute := range []struct{ name, value string }{{"ID", content.ID}, {"source", content.Source}} {
		if mistake := cloudevent.AttributeMistake(attribute.value); mistake != "" {
			return nil, &ContentError{fmt.Sprintf("the %s of the event %s", attribute.name, mistake)}
		}
	}
	return &events.Event{Content: *content, Tenant: s.Tenant}, nil
}

// id returns the ID of the event of a message that is no CloudEvent.
func (d delivery) id() string {
	if id := d.header.Get(nats.MsgIdHdr); id != "" {
		return id
	}
	if d.position != "" {
		return d.position
	}
	sum := sha256.Sum256(append([]byte(d.subject+"\x00"), d.data...))
	return hex.EncodeToString(sum[:])
}

// cloudEvent returns the content of a CloudEvent. The NATS binding has the headers of the HTTP binding,
// whose code this uses. Errors: *ContentError.
func cloudEvent(header http.Header, data []byte, isStructured bool) (*events.Content, error) {
	if isStructured {
		in, err := cloudevent.DecodeJSON(data)
		if err != nil {
			return nil, &ContentError{err.Error()}
		}
		return contentOf(in)
	}
	in, err := cloudevent.DecodeBinary(header, data)
	if err != nil {
		return nil, &ContentError{"is not a CloudEvent"}
	}
	return contentOf(in)
}

// contentOf returns the content of a CloudEvent. Errors: *ContentError.
func contentOf(in *cloudevents.Event) (*events.Content, error) {
	content, err := cloudevent.Content(in)
	if mistake, ok := errors.AsType[*cloudevent.InvalidError](err); ok {
		return nil, &ContentError{mistake.Error()}
	}
	return content, err
}
