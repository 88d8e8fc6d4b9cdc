package assertion

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/perdure/perdure/tools"
)

// Type is the type (typ) in the header of assertions. It tells them from other tokens (RFC 8725,
// section 3.11).
const Type = "perdure-assertion+jwt"

const (
	// minLifetime is the lifetime of an assertion. A call with a longer timeout has an assertion
	// that lasts as long as the call.
	minLifetime = 5 * time.Minute
	// publishTime is how long a key is only published, before it signs. Verifiers may cache the set
	// for a part of that time.
	publishTime = time.Minute
)

// Signer signs assertions, and follows changes of its keys. It is safe for concurrent use.
type Signer struct {
	issuer string
	read   func() string
	logger *slog.Logger
	now    func() time.Time

	mu        sync.Mutex
	text      string               // as Refresh has read it last
	keys      []key                // of the last valid text, the newest one last; never empty
	published map[string]time.Time // when this process had the key first, by ID
}

// Open returns a signer. issuer is the URL of the API, the claim iss. read returns the private keys
// in PEM, the newest one last; it is called again by Refresh.
func Open(issuer string, read func() string, logger *slog.Logger) (*Signer, error) {
	s := &Signer{issuer: issuer, read: read, logger: logger, now: time.Now, text: read(), published: map[string]time.Time{}}
	keys, err := parseKeys(s.text)
	if err != nil {
		return nil, fmt.Errorf("assertion: the keys: %w", err)
	}
	s.use(keys)
	return s, nil
}

// use replaces the keys. The caller holds mu, or has the only reference.
func (s *Signer) use(keys []key) {
	s.keys = keys
	published := map[string]time.Time{}
	for _, k := range keys {
		published[k.public.ID] = s.now()
		if before, ok := s.published[k.public.ID]; ok {
			published[k.public.ID] = before
		}
	}
	s.published = published
}

// Refresh reads the keys again, and returns the public ones for publication, the newest one last. If
// the keys are invalid, it logs that once, and the former keys stay. On a nil Signer it returns nil.
func (s *Signer) Refresh(ctx context.Context) []PublicKey {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if text := s.read(); text != s.text {
		s.text = text
		keys, err := parseKeys(text)
		if err != nil {
			s.logger.WarnContext(ctx, "the keys of assertions are invalid, and the former ones stay", "error", err)
		} else {
			s.use(keys)
		}
	}
	public := make([]PublicKey, len(s.keys))
	for i, k := range s.keys {
		public[i] = k.public
	}
	return public
}

// signing returns the key that signs: the newest one that was published long enough, else the oldest
// one.
func (s *Signer) signing() key {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range slices.Backward(s.keys) {
		if s.now().Sub(s.published[k.public.ID]) >= publishTime {
			return k
		}
	}
	return s.keys[0]
}

// Subject is what an assertion is about: a call of a tool.
type Subject struct {
	// Tool is the name of the tool for models, and Call the call.
	Tool string
	Call tools.Call
	// Audience names the server that may accept the assertion. Timeout is how long the call may
	// take.
	Audience string
	Timeout  time.Duration
}

// claims are the claims of an assertion in addition to the registered ones. Contributors are those of
// [tools.Run].
type claims struct {
	jwt.Claims

	Actor        actor    `json:"act"` // RFC 8693, section 4.1
	Tenant       string   `json:"tenant"`
	Contributors []string `json:"contributors"`
	Thread       string   `json:"threadId"`
	Run          string   `json:"runId"`
	ToolCall     string   `json:"toolCallId"`
	Tool         string   `json:"tool"`
}

// actor is the agent that acts for the subject.
type actor struct {
	Subject string `json:"sub"`
}

// errNoRun is the error of a call outside of a run, which acts for nobody.
var errNoRun = errors.New("assertion: the call belongs to no run")

// Sign returns a new assertion. Two assertions about one call differ in their IDs and times.
func (s *Signer) Sign(subject Subject) (string, error) {
	run := subject.Call.Run
	if run.Tenant == "" {
		return "", errNoRun
	}
	signing := s.signing()
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: signing.private, KeyID: signing.public.ID}},
		(&jose.SignerOptions{}).WithType(Type),
	)
	if err != nil {
		return "", fmt.Errorf("assertion: %w", err)
	}
	now := s.now()
	token, err := jwt.Signed(signer).Claims(claims{
		Claims: jwt.Claims{
			Issuer: s.issuer, Subject: run.Requester, Audience: jwt.Audience{subject.Audience}, ID: rand.Text(),
			IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(max(minLifetime, subject.Timeout))),
		},
		Actor: actor{run.Agent}, Tenant: run.Tenant, Contributors: run.Contributors,
		Thread: run.Thread, Run: run.ID, ToolCall: subject.Call.ID, Tool: subject.Tool,
	}).Serialize()
	if err != nil {
		return "", fmt.Errorf("assertion: %w", err)
	}
	return token, nil
}
