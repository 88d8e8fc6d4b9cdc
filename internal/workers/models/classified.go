package models

import (
	"context"
	"crypto/tls"
	"errors"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"

	"github.com/perdure/perdure/llm"
)

// hosts is a transport that remembers which hosts have answered a request. It is safe for
// concurrent use.
type hosts struct {
	next     http.RoundTripper
	answered sync.Map // set of host[:port], as in URLs
}

// RoundTrip implements [http.RoundTripper].
func (h *hosts) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := h.next.RoundTrip(req)
	if err == nil {
		h.answered.Store(req.URL.Host, true)
	}
	return res, err
}

// hasAnswered reports whether a host has answered since the process began.
func (h *hosts) hasAnswered(host string) bool {
	_, ok := h.answered.Load(host)
	return ok
}

// classified wraps a model. It removes secrets from the messages of failures, and makes failures
// final as [Options.FailFast] defines.
type classified struct {
	model    llm.Model
	hosts    *hosts
	failFast bool
	secrets  []string
}

// Stream implements [llm.Model].
func (j classified) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		for chunk, err := range j.model.Stream(ctx, req) {
			if !yield(chunk, j.classify(err)) {
				return
			}
		}
	}
}

// minSecret is the minimum length of a secret to replace, in bytes. Shorter ones occur in ordinary
// words.
const minSecret = 8

// classify returns a copy of a *llm.Error without secrets; it returns other errors, and nil,
// unchanged.
func (j classified) classify(err error) error {
	var failure *llm.Error
	if !errors.As(err, &failure) {
		return err
	}
	told := *failure
	for _, secret := range j.secrets {
		if len(secret) >= minSecret {
			told.Message = strings.ReplaceAll(told.Message, secret, "[secret]")
		}
	}
	told.Final = told.Final || j.failFast && isUnreached(failure) && !j.hosts.hasAnswered(failure.Host)
	return &told
}

// isUnreached reports whether no connection was made, for a reason that is typical of a wrong base
// URL.
func isUnreached(e *llm.Error) bool {
	var unknown *net.DNSError
	var certificate *tls.CertificateVerificationError
	// A server without TLS. net/http returns ErrSchemeMismatch only if the server's answer begins
	// with "HTTP/", and this error otherwise.
	var plain tls.RecordHeaderError
	return errors.Is(e.Err, syscall.ECONNREFUSED) ||
		errors.As(e.Err, &unknown) && unknown.IsNotFound ||
		errors.As(e.Err, &certificate) ||
		errors.As(e.Err, &plain) ||
		errors.Is(e.Err, http.ErrSchemeMismatch)
}
