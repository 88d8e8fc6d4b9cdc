package models

import (
	"context"
	"crypto/tls"
	"errors"
	"iter"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"

	"github.com/perdure/perdure/internal/secrets"
	"github.com/perdure/perdure/llm"
)

// answeringHosts is a transport that remembers which hosts have answered a request. It is safe for
// concurrent use.
type answeringHosts struct {
	next     http.RoundTripper
	answered sync.Map // set of host[:port], as in URLs
}

// RoundTrip implements [http.RoundTripper].
func (h *answeringHosts) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := h.next.RoundTrip(req)
	if err == nil {
		h.answered.Store(req.URL.Host, true)
	}
	return res, err
}

// hasAnswered reports whether a host has answered since the process began.
func (h *answeringHosts) hasAnswered(host string) bool {
	_, ok := h.answered.Load(host)
	return ok
}

// classified wraps a model. It removes secrets from the messages of failures, and makes failures
// final as [Options.FailFast] defines.
type classified struct {
	model    llm.Model
	hosts    *answeringHosts
	failFast bool
	secrets  func() []string // nil = none
}

// Stream implements [llm.Model].
func (c classified) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		for chunk, err := range c.model.Stream(ctx, req) {
			if !yield(chunk, c.classify(err)) {
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
func (c classified) classify(err error) error {
	var failure *llm.Error
	if !errors.As(err, &failure) {
		return err
	}
	failureCopy := *failure
	failureCopy.Message = c.redact(failure.Message)
	failureCopy.Final = failureCopy.Final || c.failFast && isUnreached(failure) && !c.hosts.hasAnswered(failure.Host)
	return &failureCopy
}

// redact returns a message with the secrets replaced.
func (c classified) redact(message string) string {
	if c.secrets == nil {
		return message
	}
	long := slices.DeleteFunc(slices.Clone(c.secrets()), func(secret string) bool { return len(secret) < minSecret })
	return secrets.NewRedactor(long...).Text(message)
}

// isUnreached reports whether no connection was made, for a reason that is typical of a wrong base
// URL.
func isUnreached(e *llm.Error) bool {
	var dnsErr *net.DNSError
	var certErr *tls.CertificateVerificationError
	// A server without TLS. net/http returns ErrSchemeMismatch only if the server's answer begins
	// with "HTTP/", and this error otherwise.
	var tlsErr tls.RecordHeaderError
	return errors.Is(e.Err, syscall.ECONNREFUSED) ||
		errors.As(e.Err, &dnsErr) && dnsErr.IsNotFound ||
		errors.As(e.Err, &certErr) ||
		errors.As(e.Err, &tlsErr) ||
		errors.Is(e.Err, http.ErrSchemeMismatch)
}
