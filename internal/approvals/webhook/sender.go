package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/perdure/perdure/internal/transport/egress"
)

const (
	timeout = 15 * time.Second
	maxBody = 64 << 10 // of an answer; nobody reads it
)

// Sender sends. It is safe for concurrent use.
type Sender struct {
	Hooks  []Hook
	lookup func(name string) string
	client *http.Client
}

// NewSender makes a sender for hooks whose secrets lookup finds by name. Unless private hosts are
// allowed, it talks to the public internet only.
func NewSender(hooks []Hook, lookup func(name string) string, allowPrivate bool) *Sender {
	return &Sender{Hooks: hooks, lookup: lookup, client: &http.Client{
		Transport: egress.Traced(egress.Transport(allowPrivate)), Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// secretPrefix begins the variables that have secrets.
const secretPrefix = "PERDURE_SECRET_"

// Open makes a sender for the hooks of a file, as [Load] reads it; an empty name = none. Getenv
// reads the worker's environment, for secrets, and is used concurrently. Close must be called.
func Open(file string, getenv func(name string) string, allowPrivate bool) (*Sender, error) {
	lookup := func(name string) string { return getenv(secretPrefix + name) }
	if file == "" {
		return NewSender(nil, lookup, allowPrivate), nil
	}
	hooks, err := Load(file, lookup)
	if err != nil {
		return nil, err
	}
	return NewSender(hooks, lookup, allowPrivate), nil
}

// Close ends the connections that are not in use.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// RefusedError says that a message was not taken.
type RefusedError struct {
	// Status is what the receiver answered; 0 = nothing.
	Status int
	// Reason is in our own words: no address, no header and nothing of the answer.
	Reason string
	// Final: the same again will not be taken either.
	Final bool
	// After is how long the receiver wants to be left alone; 0 = it did not say.
	After time.Duration
}

func (e *RefusedError) Error() string { return "webhook: " + e.Reason }

// Send sends a message once to the hook with a name. The same id tells the receiver that it is the
// same message. It fails with a *RefusedError, or with ctx's error.
func (s *Sender) Send(ctx context.Context, name, id string, body []byte) (status int, err error) {
	at := slices.IndexFunc(s.Hooks, func(h Hook) bool { return h.Name == name })
	if at < 0 {
		return 0, &RefusedError{Reason: fmt.Sprintf("this worker has no webhook %.64q", name)} // another one may
	}
	req, err := s.request(ctx, s.Hooks[at], id, body)
	if err != nil {
		return 0, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, unanswered(ctx, req, err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody)) // so that the connection can be used again
	return resp.StatusCode, checkStatus(resp)
}

// request returns the message, signed. The time is that of sending: a receiver refuses what is old.
func (s *Sender) request(ctx context.Context, h Hook, id string, body []byte) (*http.Request, error) {
	raw, err := key(s.lookup(h.Secret))
	if err != nil {
		return nil, &RefusedError{Reason: fmt.Sprintf("the secret PERDURE_SECRET_%s %s", h.Secret, err)}
	}
	signer, err := standardwebhooks.NewWebhookRaw(raw)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	now := time.Now()
	signature, err := signer.Sign(id, now, body)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	for name, value := range map[string]string{
		standardwebhooks.HeaderWebhookID: id, standardwebhooks.HeaderWebhookTimestamp: strconv.FormatInt(now.Unix(), 10),
		standardwebhooks.HeaderWebhookSignature: signature, "Content-Type": "application/json", "User-Agent": "perdure",
	} {
		req.Header.Set(name, value)
	}
	return req, nil
}

func unanswered(ctx context.Context, req *http.Request, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	// What a name stands for, and who is behind it, may change within a day; the rule about
	// addresses does not.
	failure, reason := egress.Explain(egress.HostOf(req.URL), err)
	var private *egress.PrivateAddressError
	return &RefusedError{Reason: reason, Final: failure == egress.Refused && errors.As(err, &private)}
}

// checkStatus reads an answer's status; what else it says is nobody's business.
func checkStatus(resp *http.Response) error {
	status := resp.StatusCode
	if status >= 200 && status < 300 || status == http.StatusGone { // gone: the receiver wants no more of it
		return nil
	}
	again := status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests
	return &RefusedError{Status: status, Reason: fmt.Sprintf("the receiver answered %d", status), Final: !again, After: retryAfter(resp)}
}

// longestAfter bounds what a receiver may ask for.
const longestAfter = time.Hour

func retryAfter(resp *http.Response) time.Duration {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(min(seconds, 1<<20))*time.Second, longestAfter)
}
