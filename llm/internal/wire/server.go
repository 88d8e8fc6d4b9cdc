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

// Server is a provider's server, as far as errors concern it.
type Server struct {
	// BaseURL is where requests go. Default tells that it is the provider's own.
	BaseURL string
	Default bool
	// HasKey tells that a key is configured.
	HasKey bool
	// KeyVariable and BaseVariable are the environment variables that set the
	// key and the base URL.
	KeyVariable, BaseVariable string
}

// Check returns what is wrong with the configuration; nil = nothing. Models report it at each call,
// so that a worker without a key still serves other models.
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

// Explain adds the host and a hint to an [*llm.Error] in err's chain. Any other
// error is returned as it is.
func (s Server) Explain(err error) error {
	var failure *llm.Error
	if !errors.As(err, &failure) {
		return err
	}
	explained := *failure // it may be shared by all calls
	if address, err := url.Parse(s.BaseURL); err == nil && explained.Host == "" {
		explained.Host = address.Host
	}
	if explained.Hint == "" {
		explained.Hint = s.hint(&explained)
	}
	return &explained
}

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

// connectionHint is for failures without an answer of the provider's.
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

// connectionReason says why a connection failed, and whether by a timeout. The
// text of err itself may hold addresses of proxies and parts of requests.
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

// tlsReason says why there is no TLS connection; "" = err is about something else.
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
