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

// How long what the provider answered stands, and how long that it did not answer. Whoever makes up
// tokens with keys that nobody has heard of makes the verifier look for new ones with each of them.
const (
	fresh  = 10 * time.Second
	broken = time.Second
)

// maxDocument bounds what the provider may answer with.
const maxDocument = 1 << 20

// fetcher is the verifier's way to the provider. It asks for each document once in a while, and
// whatever is no document is auth.ErrUnavailable.
type fetcher struct {
	base http.RoundTripper
	now  func() time.Time

	mu        sync.Mutex
	documents map[string]*document // by URL
}

// document is what the provider answered when it was asked, or why there was no answer.
type document struct {
	until  time.Time
	header http.Header
	body   []byte
	err    error
}

func newFetcher(base http.RoundTripper, now func() time.Time) *fetcher {
	return &fetcher{base: base, now: now, documents: map[string]*document{}}
}

// RoundTrip implements http.RoundTripper.
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

func (f *fetcher) fetch(r *http.Request) *document {
	header, body, err := f.roundTrip(r)
	if err != nil {
		return &document{until: f.now().Add(broken), err: fmt.Errorf("%w: %w", auth.ErrUnavailable, err)}
	}
	return &document{until: f.now().Add(fresh), header: header, body: body}
}

func (f *fetcher) roundTrip(r *http.Request) (http.Header, []byte, error) {
	answer, err := f.base.RoundTrip(r)
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxDocument))
	err = errors.Join(err, answer.Body.Close())
	switch {
	case err != nil:
		return nil, nil, err
	case answer.StatusCode != http.StatusOK:
		return nil, nil, fmt.Errorf("the provider answers %s", answer.Status)
	case !json.Valid(body):
		return nil, nil, errors.New("the provider answers with something else than JSON")
	}
	return answer.Header, body, nil
}

// outageKey is the key of the error of an outage in a context.
type outageKey struct{}

// noting returns a context in which a keySet notes why keys could not be had: the verifier makes a
// text of every error, and would take that one for a bad token.
func noting(ctx context.Context) (context.Context, *error) {
	var outage error
	return context.WithValue(ctx, outageKey{}, &outage), &outage
}

// keySet is the key set of a verifier. It keeps the error of an outage apart from those of invalid
// tokens.
type keySet struct{ oidc.KeySet }

func (k keySet) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, jwt)
	if err != nil && (errors.Is(err, auth.ErrUnavailable) || ctx.Err() != nil) {
		if outage, ok := ctx.Value(outageKey{}).(*error); ok {
			*outage = err
		}
	}
	return payload, err
}
