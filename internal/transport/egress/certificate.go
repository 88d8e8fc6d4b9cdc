package egress

import (
	"crypto/tls"
	"errors"
)

// certificateError reports whether a server is not who it should be, or speaks no TLS.
func certificateError(err error) bool {
	var invalid *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	return errors.As(err, &invalid) || errors.As(err, &plain)
}
