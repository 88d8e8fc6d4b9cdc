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

// hosts remembers which hosts have answered. It may be used concurrently.
type hosts struct {
	next     http.RoundTripper
	answered sync.Map // host and port, as in the URL
}

// RoundTrip implements [http.RoundTripper].
func (h *hosts) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := h.next.RoundTrip(req)
	if err == nil {
		h.answered.Store(req.URL.Host, true)
	}
	return res, err
}

func (h *hosts) hasAnswered(host string) bool {
	_, ok := h.answered.Load(host)
	return ok
}

// classified is a model whose failures are told without secrets, and are final as
// [Options.FailFast] says.
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

// minSecret is the length in bytes below which a secret is not looked for: it would be found in
// ordinary words.
const minSecret = 8

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

// isUnreached reports whether no connection was made, for a reason that a wrong base URL has.
func isUnreached(e *llm.Error) bool {
	var unknown *net.DNSError
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError // net/http makes it an ErrSchemeMismatch only if the server's answer begins with "HTTP/"
	return errors.Is(e.Err, syscall.ECONNREFUSED) ||
		errors.As(e.Err, &unknown) && unknown.IsNotFound ||
		errors.As(e.Err, &certificate) ||
		errors.As(e.Err, &plain) ||
		errors.Is(e.Err, http.ErrSchemeMismatch)
}
