// Package certificates serves TLS with a certificate from files, and follows their changes. A
// connection keeps the certificate with which it began, so a rotation ends no connection.
package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/internal/process/filewatch"
)

// Certificates are the certificates of a server. They are safe for concurrent use.
type Certificates struct {
	files   config.TLS
	current atomic.Pointer[tls.Config]
	watch   *filewatch.Watch
}

// Open reads the files, and watches them until Close. If they change to something invalid, the
// earlier certificate stays, and the logger gets one warning. Errors: *config.VariableError.
func Open(files config.TLS, logger *slog.Logger) (*Certificates, error) {
	c := &Certificates{files: files}
	names := slices.DeleteFunc([]string{files.Cert, files.Key, files.ClientCA}, func(name string) bool { return name == "" })
	c.watch = filewatch.Start(func() {
		if expires, err := c.load(); err != nil {
			logger.Warn("the new TLS certificate is invalid: the API keeps the earlier one", "error", err)
		} else {
			logger.Info("the TLS certificate has changed", "expires", expires)
		}
	}, names...)
	if _, err := c.load(); err != nil {
		c.watch.Stop()
		return nil, err
	}
	return c, nil
}

// Close ends the watch of the files.
func (c *Certificates) Close() { c.watch.Stop() }

// Config returns the configuration of a server. Each new connection has the newest certificate.
func (c *Certificates) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current.Load(), nil },
	}
}

// load reads the files, and returns when the certificate expires.
func (c *Certificates) load() (expires time.Time, err error) {
	pair, err := tls.LoadX509KeyPair(c.files.Cert, c.files.Key)
	if err != nil {
		return time.Time{}, &config.VariableError{Name: "PERDURE_TLS_CERT_FILE", Err: err}
	}
	cfg := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		NextProtos:   []string{"h2", "http/1.1"},
	}
	if c.files.ClientCA != "" {
		if cfg.ClientCAs, err = authorities(c.files.ClientCA); err != nil {
			return time.Time{}, &config.VariableError{Name: "PERDURE_TLS_CLIENT_CA_FILE", Err: err}
		}
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
		cfg.VerifyConnection = c.checkClient
		// A resumed session would keep a client whose authority was removed.
		cfg.SessionTicketsDisabled = true
	}
	c.current.Store(cfg)
	return pair.Leaf.NotAfter, nil
}

// authorities reads the certificates of a file.
func authorities(name string) (*x509.CertPool, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", name)
	}
	return pool, nil
}

// checkClient refuses a client without one of the names. Its authority is verified before.
func (c *Certificates) checkClient(state tls.ConnectionState) error {
	if len(c.files.ClientNames) == 0 {
		return nil
	}
	if len(state.PeerCertificates) == 0 {
		return errors.New("the client has no certificate")
	}
	leaf := state.PeerCertificates[0]
	for _, allowed := range c.files.ClientNames {
		for _, name := range leaf.DNSNames {
			if strings.EqualFold(name, allowed) {
				return nil
			}
		}
		for _, uri := range leaf.URIs {
			if uri.String() == allowed {
				return nil
			}
		}
	}
	return fmt.Errorf("the client's certificate has the names %q %q, and none of PERDURE_TLS_CLIENT_NAMES", leaf.DNSNames, leaf.URIs)
}
