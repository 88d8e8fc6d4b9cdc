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
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/internal/events/cloudevent"
)

// WebhookPath begins the path of a webhook, which the name of its source ends. The path is also the
// source of its events.
const WebhookPath = "/webhooks/"

// ErrUnverified is the error of a request that no source has signed: its name is unknown, or its
// signature is not valid. The text is for the operator, and must not be sent to the client.
var ErrUnverified = errors.New("the signature is not valid")

// ContentError is the error of a request that its source has signed, and that is no event.
type ContentError struct{ Reason string }

// Error implements error.
func (e *ContentError) Error() string { return e.Reason }

// errTooDeep is the error of JSON that could be stored inside other documents, but not be read again.
var errTooDeep = &ContentError{fmt.Sprintf("is nested deeper than %d levels, the maximum of an event", agui.MaxDepth)}

// Message is a request of a webhook whose signature is valid.
type Message struct {
	// Tenant is the tenant of the source.
	Tenant string
	// Challenge is a text that the provider wants to have back. "" = the message is an event.
	Challenge string
	// Event is the event; nil = the message is a challenge.
	Event *events.Event
}

// Receive verifies a request to the webhook of a source, and returns its message; with a *ContentError it has
// only the tenant. Errors: ErrUnverified, *ContentError.
func (s *Set) Receive(name string, header http.Header, body []byte) (*Message, error) {
	return s.receive(name, header, body, time.Now())
}

// receive is Receive at a time.
func (s *Set) receive(name string, header http.Header, body []byte, now time.Time) (*Message, error) {
	source := s.find(name)
	if source == nil || source.Webhook == nil {
		return nil, fmt.Errorf("%w: there is no webhook %.64q", ErrUnverified, name)
	}
	w := source.Webhook
	scheme := schemes[w.Scheme]
	err := errors.New("the secret is missing")
	for _, key := range strings.Fields(s.lookup(w.Secret)) {
		if err = scheme.verify(key, header, body, now); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: webhook %s: %w", ErrUnverified, name, err)
	}
	if agui.TooDeep(body) { // before json.Valid, which reports JSON of more than 10,000 levels as invalid
		return &Message{Tenant: source.Tenant}, errTooDeep
	}
	if !json.Valid(body) {
		return &Message{Tenant: source.Tenant}, &ContentError{"must be JSON: if the provider offers several content types, choose application/json"}
	}
	in := request{header, membersOf(body)}
	if scheme.challenge != nil {
		if challenge := scheme.challenge(in); challenge != "" {
			return &Message{Tenant: source.Tenant, Challenge: challenge}, nil
		}
	}
	e, err := eventOf(source, in, body)
	return &Message{Tenant: source.Tenant, Event: e}, err
}

// eventOf returns the event of a verified request. Errors: *ContentError.
func eventOf(source *Source, in request, body []byte) (*events.Event, error) {
	id, kind := schemes[source.Webhook.Scheme].identify(in)
	if id == "" {
		sum := sha256.Sum256(body)
		id = hex.EncodeToString(sum[:])
	}
	name := source.Name
	if kind != "" {
		name += "." + kind
	}
	for _, attribute := range []struct{ name, value string }{{"ID", id}, {"type", name}} {
		if mistake := cloudevent.AttributeMistake(attribute.value); mistake != "" {
			return nil, &ContentError{fmt.Sprintf("the %s of the event %s", attribute.name, mistake)}
		}
	}
	return &events.Event{
		Content: events.Content{ID: id, Source: WebhookPath + source.Name, Type: name, Data: slices.Clone(body)},
		Tenant:  source.Tenant,
	}, nil
}
