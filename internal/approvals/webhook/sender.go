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

	"github.com/perdure/perdure/internal/secrets"
	"github.com/perdure/perdure/internal/transport/egress"
)

// timeout bounds a request with its response. maxBody bounds how much of a response's body is read
// (and discarded), in bytes.
const (
	requestTimeout = 15 * time.Second
	maxBody        = 64 << 10
)

// Sender sends messages to webhooks, over connections that it reuses. It follows no redirect. It is
// safe for concurrent use; [Sender.Close] ends idle connections.
type Sender struct {
	// Hooks are the webhooks of this process. They must not be changed.
	Hooks []Hook
	// ConsoleURL is the address of the console without a slash at its end, which messages contain;
	// "" = none. It must be set before the first message.
	ConsoleURL string

	lookup func(name string) string
	client *http.Client
}

// NewSender returns a sender for hooks. lookup returns the value of a secret by its name; it is
// called for each message and concurrently. policy says which addresses the sender may
// reach.
func NewSender(hooks []Hook, lookup func(name string) string, policy egress.NetworkPolicy) *Sender {
	return &Sender{Hooks: hooks, lookup: lookup, client: &http.Client{
		Transport: egress.Traced(egress.Transport(policy)), Timeout: requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Open returns a sender for the hooks of a file, as [Load] reads it; with an empty name, a sender
// without hooks. getenv reads the worker's environment for secrets; it is called concurrently. The
// caller must call Close.
func Open(file string, getenv func(name string) string, policy egress.NetworkPolicy) (*Sender, error) {
	lookup := func(name string) string { return getenv(secrets.VariablePrefix + name) }
	if file == "" {
		return NewSender(nil, lookup, policy), nil
	}
	hooks, err := Load(file, lookup)
	if err != nil {
		return nil, err
	}
	return NewSender(hooks, lookup, policy), nil
}

// Close ends the connections that are idle. Messages in progress continue.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// RefusedError reports that a receiver did not accept a message.
type RefusedError struct {
	// Status is the HTTP status of the response; 0 = there was no response.
	Status int
	// Reason contains no address, no header and no part of the response: it is stored in Temporal's
	// history, and may be shown to approvers.
	Reason string
	// Final reports that a repetition of the message would fail, too.
	Final bool
	// After is the pause that the receiver asked for with Retry-After, at most an hour; 0 = it
	// asked for none.
	After time.Duration
}

func (e *RefusedError) Error() string { return "webhook: " + e.Reason }

// Send sends a message once, to the hook of a name. id identifies the message: a receiver that sees
// an id twice ignores the second message. status is the HTTP status; 0 = there was no response.
// Errors: *RefusedError, or the cause of ctx's end.
func (s *Sender) Send(ctx context.Context, name, id string, body []byte) (status int, err error) {
	i := slices.IndexFunc(s.Hooks, func(h Hook) bool { return h.Name == name })
	// Not final: another worker may have the webhook in its file, and an attempt may run there.
	if i < 0 {
		return 0, &RefusedError{Reason: fmt.Sprintf("this worker has no webhook %.64q", name)}
	}
	req, err := s.request(ctx, s.Hooks[i], id, body)
	if err != nil {
		return 0, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, transportError(ctx, req, err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody)) // a connection is reused only if its response was read to the end
	return resp.StatusCode, checkStatus(resp)
}

// request returns the signed request of a message. Its timestamp is the time of sending, not that
// of the event: receivers refuse old timestamps (Standard Webhooks, replay protection).
func (s *Sender) request(ctx context.Context, h Hook, id string, body []byte) (*http.Request, error) {
	raw, err := decodeSecret(s.lookup(h.Secret))
	if err != nil {
		return nil, &RefusedError{Reason: fmt.Sprintf("the secret %s%s %s", secrets.VariablePrefix, h.Secret, err)}
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

// transportError maps a request without a response to an error. The end of ctx is returned as its
// cause, so that it does not count as a refusal.
func transportError(ctx context.Context, req *http.Request, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	// DNS names and hosts may be repaired within the time that a message is repeated, so most
	// failures are not final. A private address is: the rule about addresses does not change.
	failure, reason := egress.Explain(egress.HostOf(req.URL), err)
	var private *egress.PrivateAddressError
	return &RefusedError{Reason: reason, Final: failure == egress.Refused && errors.As(err, &private)}
}

// checkStatus returns nil for the statuses that end a delivery: 2xx, and 410 Gone, by which a
// receiver refuses all further messages. Other statuses are a *RefusedError: 5xx, 408, 425 and 429
// are to be repeated, the rest is final.
func checkStatus(resp *http.Response) error {
	status := resp.StatusCode
	if status >= 200 && status < 300 || status == http.StatusGone {
		return nil
	}
	isRetryable := status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests
	return &RefusedError{Status: status, Reason: fmt.Sprintf("the receiver answered %d", status), Final: !isRetryable, After: retryAfter(resp)}
}

// maxRetryAfter bounds the pause that a receiver can ask for.
const maxRetryAfter = time.Hour

// retryAfter returns the pause of a Retry-After header in seconds; 0 = it is missing, or is a date.
func retryAfter(resp *http.Response) time.Duration {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(min(seconds, 1<<20))*time.Second, maxRetryAfter)
}
