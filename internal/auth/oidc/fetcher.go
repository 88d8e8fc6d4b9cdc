package oidc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/perdure/perdure/internal/auth"
)

// fresh is how long a document of the provider is reused, broken how long a failure is. Without
// this, every forged token with an unknown key ID would make the verifier request the provider's
// keys.
const (
	documentTTL = 10 * time.Second
	failureTTL  = time.Second
)

// maxDocument bounds a response of the provider, in bytes.
const maxDocument = 1 << 20

// fetcher is the HTTP transport of the verifier. It caches documents of the provider, and marks
// every failure to get one as auth.ErrUnavailable. It makes one request at a time; concurrent
// callers wait for it. It is safe for concurrent use.
type fetcher struct {
	base http.RoundTripper
	now  func() time.Time

	mu        sync.Mutex
	documents map[string]*document // by URL
}

// document is a response of the provider, or the failure to get one.
type document struct {
	until  time.Time
	header http.Header
	body   []byte
	err    error
}

// newFetcher returns a fetcher over a transport, with a clock.
func newFetcher(base http.RoundTripper, now func() time.Time) *fetcher {
	return &fetcher{base: base, now: now, documents: map[string]*document{}}
}

// RoundTrip implements http.RoundTripper. It holds the lock during a request, so that concurrent
// callers get the same document.
func (f *fetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for url, d := range f.documents {
		if f.now().After(d.until) {
			delete(f.documents, url)
		}
	}
	url := r.URL.String()
	d := f.documents[url]
	if d == nil {
		d = f.fetch(r)
		f.documents[url] = d
	}
	if d.err != nil {
		return nil, d.err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: d.header, Body: io.NopCloser(bytes.NewReader(d.body)), ContentLength: int64(len(d.body)), Request: r,
	}, nil
}

// fetch requests a document, and returns it or the failure with its time of expiry.
func (f *fetcher) fetch(r *http.Request) *document {
	header, body, err := f.roundTrip(r)
	if err != nil {
		return &document{until: f.now().Add(failureTTL), err: fmt.Errorf("%w: %w", auth.ErrUnavailable, err)}
	}
	return &document{until: f.now().Add(documentTTL), header: header, body: body}
}

// roundTrip requests a document. A status other than 200, and a body that is not JSON, are errors.
func (f *fetcher) roundTrip(r *http.Request) (http.Header, []byte, error) {
	response, err := f.base.RoundTrip(r)
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument))
	err = errors.Join(err, response.Body.Close())
	switch {
	case err != nil:
		return nil, nil, err
	case response.StatusCode != http.StatusOK:
		return nil, nil, fmt.Errorf("the provider answers %s", response.Status)
	case !json.Valid(body):
		return nil, nil, errors.New("the provider's answer is not JSON")
	}
	return response.Header, body, nil
}

// outageKey is the context key of the error that noting returns.
type outageKey struct{}

// withOutage returns a context in which keySet stores the reason if keys are unavailable. The
// verifier formats errors as text, so errors.Is could not distinguish an outage from an invalid
// token.
func withOutage(ctx context.Context) (context.Context, *error) {
	var outage error
	return context.WithValue(ctx, outageKey{}, &outage), &outage
}

// keySet is the key set of the verifier. It stores the error of an outage in the context of noting.
type keySet struct{ oidc.KeySet }

// VerifySignature implements oidc.KeySet.
func (k keySet) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, jwt)
	if err != nil && (errors.Is(err, auth.ErrUnavailable) || ctx.Err() != nil) {
		if outage, ok := ctx.Value(outageKey{}).(*error); ok {
			*outage = err
		}
	}
	return payload, err
}
