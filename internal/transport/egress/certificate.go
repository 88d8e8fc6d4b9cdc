package egress

import (
	"crypto/tls"
	"errors"
)

// certificateError reports whether a server has no valid certificate for its name, or does not use
// TLS.
func certificateError(err error) bool {
	var certErr *tls.CertificateVerificationError
	var tlsErr tls.RecordHeaderError
	return errors.As(err, &certErr) || errors.As(err, &tlsErr)
}
