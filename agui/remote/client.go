package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/transport/egress"
	"github.com/perdure/perdure/internal/transport/eventsource"
)

const (
	maxExcerpt    = 2 << 10  // of a refusal, in bytes
	excerptMargin = 16 << 10 // so that a secret at the end of the excerpt is hidden completely
	excerptTime   = 5 * time.Second
	maxEventID    = 1 << 10 // a longer SSE event ID is ignored
)

// Client makes runs of remote agents. It is immutable and safe for concurrent use.
type Client struct{ transport http.RoundTripper }

// NewClient returns a client. transport decides which addresses may be reached, see
// [egress.Transport], and is closed by the caller.
func NewClient(transport http.RoundTripper) *Client { return &Client{transport} }

// Run makes the call when the iteration begins, and yields its events. An error is the last element:
// an *Error, or the cause of ctx. Without an error, the last event was the terminal event of the run
// that its RunID names. A break ends the request. No goroutine outlives the iteration. At the first event, the
// client has dropped the input, except for bytes that the remote has not taken yet.
func (c *Client) Run(ctx context.Context, call Call) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r := &response{call: call, limits: call.Limits.orDefault(), id: call.LastEventID, yield: yield}
		if err := r.stream(ctx, c.transport); err != nil && !errors.Is(err, errStopped) {
			yield(Event{}, err)
		}
	}
}

// errStopped means that the consumer has ended the iteration.
var errStopped = errors.New("the consumer has stopped reading")

// response is the progress of one call. It is used by one goroutine, in an iteration.
type response struct {
	call Call // without the input except for its RunID: the input may be large, and the response long
	// encoded is the input as it is sent; nil = a response has arrived.
	encoded []byte
	limits  Limits
	yield   func(Event, error) bool
	host    string      // of the URL, for messages
	sent    atomic.Bool // the request may have reached the remote
	status  int
	events  *normalizer
	// received means that an event was yielded; id is the ID of the last event that has one.
	received bool
	id       string
}

// stream makes the request and yields its events. It returns nil at the end of the requested run.
func (r *response) stream(outer context.Context, transport http.RoundTripper) error {
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)
	req, err := r.request(ctx)
	if err != nil {
		return err
	}
	timer := time.AfterFunc(r.limits.Silence, func() { cancel(errSilent) })
	defer timer.Stop()
	client := &http.Client{Transport: transport, CheckRedirect: redirects(req)}
	resp, err := client.Do(req)
	timer.Stop()
	r.encoded = nil // no redirect follows
	if err != nil {
		if resp != nil { // of a redirect that was refused; its body is closed
			r.status = resp.StatusCode
		}
		return r.requestError(ctx, outer, err)
	}
	defer func() { _ = resp.Body.Close() }() // nothing depends on the error
	r.status = resp.StatusCode
	limited := &body{Reader: resp.Body, left: r.limits.RunBytes, timer: timer, limit: r.limits.Silence}
	if err := r.checkResponse(resp, limited); err != nil {
		return err
	}
	if err := r.readEvents(limited); err != nil {
		return r.streamError(ctx, outer, err)
	}
	return nil
}

// request returns the HTTP request of the call.
func (r *response) request(ctx context.Context) (*http.Request, error) {
	u, err := url.Parse(r.call.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, r.fail(KindInvalid, "the URL must begin with https:// or http:// and have a host", nil)
	}
	r.host = u.Host
	in, warnings := r.call.Protocol.Input(r.call.Input)
	if r.encoded, err = json.Marshal(in); err != nil {
		return nil, r.fail(KindInvalid, "the input cannot be encoded", err)
	}
	r.call.Input = agui.RunAgentInput{RunID: in.RunID}
	r.events = newNormalizer(in, r.call.LastEventID != "")
	r.events.warn(warnings...)
	// Only a connection makes it possible that the remote has received anything.
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { r.sent.Store(true) }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodPost, u.String(), nil)
	if err != nil {
		return nil, r.fail(KindInvalid, "the URL is not valid", nil)
	}
	req.ContentLength = int64(len(r.encoded))
	req.Body = newRequestBody(r.encoded)
	req.GetBody = func() (io.ReadCloser, error) { return newRequestBody(r.encoded), nil }
	for name, values := range r.call.Header {
		for _, value := range values {
			req.Header.Add(name, value)
		}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", eventsource.ContentType)
	// Compression would delay events until a block is full.
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "perdure")
	if r.call.LastEventID != "" {
		req.Header.Set("Last-Event-ID", r.call.LastEventID)
	}
	return req, nil
}

// redirects returns a CheckRedirect: a redirect must stay on the host, and repeat the POST (307 and
// 308). Another one would become a GET without the input.
func redirects(first *http.Request) func(*http.Request, []*http.Request) error {
	check := egress.Redirects(egress.Hosts{egress.HostOf(first.URL)}, slices.Collect(maps.Keys(first.Header)))
	return func(next *http.Request, before []*http.Request) error {
		if next.Method != http.MethodPost {
			return &egress.RedirectError{Reason: "a redirect would not repeat the request"}
		}
		return check(next, before)
	}
}

// fail returns an error with the progress of the call.
func (r *response) fail(kind Kind, message string, cause error) *Error {
	return &Error{
		Kind: kind, Message: message, Err: cause,
		Status: r.status, Sent: r.sent.Load(), Received: r.received, LastEventID: r.id,
	}
}

// requestError returns the error of a request without a response.
func (r *response) requestError(ctx, outer context.Context, err error) error {
	switch {
	case outer.Err() != nil:
		return context.Cause(outer)
	case errors.Is(context.Cause(ctx), errSilent):
		return r.fail(KindSilent, fmt.Sprintf("%s has not answered for %s", r.host, r.limits.Silence), errSilent)
	}
	if urlErr, ok := errors.AsType[*url.Error](err); ok {
		err = urlErr.Err
	}
	failure, reason := egress.Explain(r.host, err)
	kind := KindBroken
	switch {
	case failure == egress.Refused:
		kind = KindForbidden
	case !r.sent.Load() && failure == egress.Broken && isInvalidHeader(err):
		return r.fail(KindInvalid, "a header is not valid", nil)
	case failure == egress.Unreached:
		kind = KindUnreachable
	case !r.sent.Load(): // for example a failed TLS handshake
		kind, reason = KindUnreachable, r.host+" could not be reached, and nothing was sent"
	}
	return r.fail(kind, reason, err)
}

// isInvalidHeader reports whether the transport refuses to send a header. net/http has no type for
// that error.
func isInvalidHeader(err error) bool {
	return strings.HasPrefix(err.Error(), "net/http: invalid header field")
}

// checkResponse returns an error unless the response is an event stream.
func (r *response) checkResponse(resp *http.Response, limited io.Reader) error {
	status := strings.TrimSpace(fmt.Sprintf("HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // an invalid type counts as ""
	kind := KindRejected
	switch code := resp.StatusCode; {
	case code == http.StatusOK && mediaType == eventsource.ContentType:
		return nil
	case code >= 200 && code <= 299:
		return r.fail(KindNotEvents, fmt.Sprintf("%s has answered with %s and the content type %.100q, which is no event stream", r.host, status, mediaType), nil)
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		kind = KindUnavailable
	case code >= 500:
		kind = KindFailed
	}
	failure := r.fail(kind, r.host+" has answered with "+status, nil)
	failure.RetryAfter = egress.RetryAfter(resp.Header, time.Now())
	failure.Excerpt = r.excerpt(resp.Body, limited)
	return failure
}

// excerpt returns the beginning of the text of a refusal.
func (r *response) excerpt(closer io.Closer, limited io.Reader) string {
	timer := time.AfterFunc(excerptTime, func() { _ = closer.Close() })
	defer timer.Stop()
	// A read error does not matter: the status is the outcome.
	raw, _ := io.ReadAll(io.LimitReader(limited, maxExcerpt+excerptMargin))
	s := string(raw)
	if r.call.Redact != nil {
		s = r.call.Redact(s)
	}
	if len(s) > maxExcerpt {
		end := maxExcerpt
		for end > maxExcerpt-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end]
	}
	return strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
}

// readEvents yields the events of the response. It returns nil at the end of the requested run, and
// io.EOF at the end of the response.
func (r *response) readEvents(from io.Reader) error {
	reader := eventsource.NewReader(from, r.limits.EventBytes)
	for count := 0; ; count++ {
		frame, err := reader.Next()
		if errors.Is(err, io.EOF) && json.Valid(reader.Cut()) {
			// The empty line is missing at the end of the stream. A part of an object is no valid
			// JSON, so the event is complete.
			frame, err = eventsource.Frame{Data: reader.Cut()}, nil
			from = nil
		}
		if err != nil {
			return err
		}
		if count == r.limits.Events {
			return errTooLarge
		}
		if err := r.take(frame); err != nil {
			return err
		}
		switch {
		case r.isOver():
			return nil
		case from == nil:
			return io.EOF
		}
	}
}

// take yields the events of one SSE event.
func (r *response) take(frame eventsource.Frame) error {
	events, err := r.events.take(frame.Data)
	for i, e := range events {
		if i == len(events)-1 && err == nil && isEventID(frame.ID) {
			r.id = frame.ID
		}
		r.received = true
		if !r.yield(Event{Event: e, ID: r.id, RunID: r.events.run, Warnings: r.events.takeWarnings()}, nil) {
			return errStopped
		}
	}
	return err
}

// isEventID reports whether an SSE event ID can be sent back in a header.
func isEventID(id string) bool {
	return id != "" && len(id) <= maxEventID && !strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r > '~' })
}

// isOver reports whether the requested run has ended.
func (r *response) isOver() bool {
	return r.events.hasEnded && !r.events.isOpen && r.events.run == r.call.Input.RunID
}

// streamError returns the error of a stream that ended before the requested run; nil = all its runs
// have ended, and the remote has chosen the ID of the last one.
func (r *response) streamError(ctx, outer context.Context, err error) error {
	tooLarge, isTooLarge := errors.AsType[*eventsource.TooLargeError](err)
	invalid, isInvalid := errors.AsType[*ProtocolError](err)
	hasEnded := r.events.hasEnded && !r.events.isOpen
	switch {
	case errors.Is(err, errStopped):
		return err
	case outer.Err() != nil:
		return context.Cause(outer)
	case isInvalid:
		return r.fail(KindProtocol, invalid.Error(), invalid)
	case isTooLarge:
		return r.fail(KindTooLarge, fmt.Sprintf("an event of %s has more than %d bytes", r.host, tooLarge.Limit), err)
	case errors.Is(err, errTooLarge):
		return r.fail(KindTooLarge, fmt.Sprintf("the response of %s has more than %d events or %d bytes", r.host, r.limits.Events, r.limits.RunBytes), err)
	case hasEnded:
		return nil
	case errors.Is(context.Cause(ctx), errSilent):
		return r.fail(KindSilent, fmt.Sprintf("%s has sent nothing for %s", r.host, r.limits.Silence), errSilent)
	case errors.Is(err, io.EOF):
		return r.fail(KindTruncated, "the stream of "+r.host+" has ended without RUN_FINISHED or RUN_ERROR", nil)
	}
	return r.fail(KindBroken, "the connection to "+r.host+" was lost during the run", err)
}
