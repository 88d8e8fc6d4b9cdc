package egress

import (
	"crypto/tls"
	"errors"
)

// certificateError reports whether a server has no valid certificate for its name, or does not use
// TLS.
func certificateError(err error) bool {
	var invalid *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	return errors.As(err, &invalid) || errors.As(err, &plain)
}
