package events

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// MaxEvent bounds the JSON of an event, in bytes.
const MaxEvent = 256 << 10

// Event is an event of a tenant.
type Event struct {
	tools.Event
	Tenant string `json:"tenant"`
	// Sender is who sent the event, without roles; nil = an anonymous caller, or a source of the
	// configuration.
	Sender *auth.Principal `json:"sender,omitempty"`
	// ReceivedAt is when it arrived first.
	ReceivedAt time.Time `json:"receivedAt"`
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

// decision returns the digest and the content of the decision with which a wait ends.
func (e *Event) decision(w *Wait) (sum [32]byte, content *stream.Decision, err error) {
	answer, err := json.Marshal(e.Event)
	if err != nil {
		return sum, nil, fmt.Errorf("events: encode event: %w", err)
	}
	content = &stream.Decision{CallID: w.CallID, Kind: "answer", Question: w.Number, Content: answer}
	sum = sha256.Sum256([]byte("event\x00" + w.CallID + "\x00" + e.Digest()))
	content.By, content.Channel = e.Sender, channel
	return sum, content, nil
}

// channel is the channel of a decision by an event.
const channel = "event"
