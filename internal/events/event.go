package events

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/stream"
)

// MaxEvent bounds the JSON of an event, in bytes.
const MaxEvent = 256 << 10

// MaxAttribute bounds the ID, source, type and subject of an event, in bytes.
const MaxAttribute = 256

// Content is an event as runs receive it: the attributes of CloudEvents, and its data.
type Content struct {
	// ID and Source identify the event.
	ID      string    `json:"id"`
	Source  string    `json:"source"`
	Type    string    `json:"type"`
	Subject string    `json:"subject,omitempty"`
	Time    time.Time `json:"time,omitzero"`
	// Data is JSON: text and bytes are strings, the latter in base64.
	Data json.RawMessage `json:"data,omitempty"`
}

// Event is an event of a tenant.
type Event struct {
	Content
	Tenant string `json:"tenant"`
	// Sender is who sent the event, without roles; nil = an anonymous caller, or a source of the
	// configuration.
	Sender *auth.Principal `json:"sender,omitempty"`
	// Via is how it has arrived.
	Via Via `json:"via,omitempty"`
	// ReceivedAt is when it arrived first.
	ReceivedAt time.Time `json:"receivedAt"`
}

// Via is how an event has arrived.
type Via string

// The ways. A webhook and a subject in NATS are those of a source of the configuration.
const (
	ViaAPI     Via = "api"
	ViaWebhook Via = "webhook"
	ViaNATS    Via = "nats"
)

// count counts an outcome of the event for metrics.
func (e *Event) count(ctx context.Context, outcome string) {
	telemetry.CountEvent(ctx, string(e.Via), outcome)
}

// Digest identifies the event in its tenant: by its source and ID.
func (e *Event) Digest() string {
	return digest(fmt.Sprintf("%d\x00%s\x00%s", len(e.Source), e.Source, e.ID))
}

// digest returns a short digest, which is a token of subjects and keys.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// subject returns the subject of an event below prefix: <tenant>.<type>.<event>.
func (e *Event) subject(prefix string) string {
	return typeSubject(prefix, e.Tenant, e.Type) + "." + e.Digest()
}

// typeSubject begins the subjects of the events of a tenant with a type.
func typeSubject(prefix, tenant, name string) string {
	return prefix + "." + stream.KeyToken(tenant) + "." + digest(name)
}

// keyThread names the key that encrypts the events of a tenant. No request can address a thread with
// this ID.
func keyThread(tenant string) stream.Thread {
	return stream.Thread{Tenant: tenant, ID: "\x00events"}
}

// decisionDigest returns the digest of the decision with which the event ends the wait of a call.
func (e *Event) decisionDigest(callID string) string {
	sum := e.decisionSum(callID)
	return hex.EncodeToString(sum[:])
}

func (e *Event) decisionSum(callID string) [32]byte {
	return sha256.Sum256([]byte("event\x00" + callID + "\x00" + e.Digest()))
}

// decision returns the content of the decision with which the event ends a wait.
func (e *Event) decision(w *Wait) (*stream.Decision, error) {
	answer, err := Encode(e.Content)
	if err != nil {
		return nil, fmt.Errorf("events: encode event: %w", err)
	}
	return &stream.Decision{CallID: w.CallID, Kind: "answer", Question: w.Number, Content: answer, By: e.Sender, Channel: Channel}, nil
}

// Encode returns the JSON of a value. It does not escape <, > and &, which would make data up to six times as
// long.
func Encode(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Channel is the channel of a decision by an event.
const Channel = "event"
