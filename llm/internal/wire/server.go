package wire

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/perdure/perdure/llm"
)

// Server identifies a provider's server for error messages and hints. It is immutable.
type Server struct {
	// BaseURL is the address of the API. Default is true if it is the vendor's own endpoint.
	BaseURL string
	Default bool
	// HasKey reports whether an API key is configured.
	HasKey bool
	// KeyVariable and BaseVariable are the names of the environment variables that configure the
	// key and the base URL, for hints.
	KeyVariable, BaseVariable string
}

// Check returns the error of an invalid configuration; nil = valid. Models return it from each call
// and not from their constructor, so that a worker without one key still serves the other models.
func (s Server) Check() *llm.Error {
	address, err := url.Parse(s.BaseURL)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		reason := s.BaseVariable + " is not an http or https URL"
		return &llm.Error{Code: llm.CodeInvalidRequest, Message: reason, Reason: reason, Hint: "set " + s.BaseVariable}
	}
	if s.Default && !s.HasKey {
		hint := "set " + s.KeyVariable + ", or " + s.BaseVariable + " for a server that needs no key"
		return &llm.Error{Code: llm.CodeUnauthorized, Message: "no API key: " + hint, Reason: "no API key", Hint: hint}
	}
	return nil
}

// Explain adds the host and a hint to the [*llm.Error] in err's chain. It returns other errors
// unchanged.
func (s Server) Explain(err error) error {
	var failure *llm.Error
	if !errors.As(err, &failure) {
		return err
	}
	explained := *failure // a copy, because the error of Check is shared by all calls
	if address, err := url.Parse(s.BaseURL); err == nil && explained.Host == "" {
		explained.Host = address.Host
	}
	if explained.Hint == "" {
		explained.Hint = s.hint(&explained)
	}
	return &explained
}

// hint returns what an operator can do about the error; "" = nothing specific.
func (s Server) hint(e *llm.Error) string {
	switch e.Code {
	case llm.CodeUnauthorized:
		if s.HasKey {
			return "check " + s.KeyVariable
		}
		return "set " + s.KeyVariable
	case llm.CodeForbidden:
		return "check what the key in " + s.KeyVariable + " may use"
	case llm.CodeQuotaExceeded:
		return "check the account of the key in " + s.KeyVariable
	case llm.CodeNotFound:
		if s.Default {
			return "check the model's name"
		}
		return "check the model's name and " + s.BaseVariable
	case llm.CodeUnavailable, llm.CodeTimeout, llm.CodeMalformedResponse:
		return s.connectionHint(e)
	default:
		return ""
	}
}

// connectionHint returns the hint for a failed connection; "" if the provider itself answered,
// because then the address is right.
func (s Server) connectionHint(e *llm.Error) string {
	switch {
	case e.Err == nil:
		return ""
	case s.Default:
		return "check the network of this worker, or set " + s.BaseVariable
	default:
		return "check " + s.BaseVariable
	}
}

// connectionReason returns why a connection failed, in fixed words, and whether it timed out. It
// never returns the text of err, which can contain proxy addresses and parts of requests.
func connectionReason(err error) (reason string, timeout bool) {
	var unresolved *net.DNSError
	var waited net.Error
	switch {
	case errors.As(err, &unresolved) && unresolved.IsNotFound:
		return "unknown host", false
	case errors.As(err, &unresolved):
		return "the host's name could not be resolved", unresolved.IsTimeout
	case errors.As(err, &waited) && waited.Timeout():
		return "the connection timed out", true
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused", false
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset", false
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to the host", false
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection", false
	}
	return cmp.Or(tlsReason(err), "the connection broke"), false
}

// tlsReason returns why the TLS handshake failed; "" if err is not a TLS error.
func tlsReason(err error) string {
	var (
		authority   x509.UnknownAuthorityError
		name        x509.HostnameError
		certificate *tls.CertificateVerificationError
		plain       tls.RecordHeaderError
		alert       tls.AlertError
	)
	switch {
	case errors.As(err, &authority):
		return "TLS: the certificate is signed by an unknown authority"
	case errors.As(err, &name):
		return "TLS: the certificate is for another host"
	case errors.As(err, &certificate):
		return "TLS: the certificate is not valid"
	case errors.As(err, &plain), errors.Is(err, http.ErrSchemeMismatch):
		return "TLS: the server does not speak TLS"
	case errors.As(err, &alert):
		return "TLS: the handshake failed"
	}
	return ""
}
