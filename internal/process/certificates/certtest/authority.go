// Package certtest makes certificates for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Authority is a certificate authority.
type Authority struct {
	// File has its certificate, in PEM.
	File string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns an authority of its own.
func NewAuthority(t *testing.T) *Authority {
	t.Helper()
	a := &Authority{File: filepath.Join(t.TempDir(), "ca.pem")}
	template := certificate("authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	var der []byte
	der, a.key = sign(t, template, nil, nil)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	write(t, a.File, "CERTIFICATE", der)
	return a
}

// Pool returns a pool with the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Issue writes a certificate and its key, for servers and clients, into the files cert.pem and
// key.pem of a folder. name is the common name. The certificate is for 127.0.0.1, localhost, and
// further names: DNS names, or URIs.
func (a *Authority) Issue(t *testing.T, dir, name string, further ...string) (cert, key string) {
	t.Helper()
	template := certificate(name)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.IPAddresses, template.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"}
	for _, name := range further {
		if !strings.Contains(name, "://") {
			template.DNSNames = append(template.DNSNames, name)
			continue
		}
		u, err := url.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, u)
	}
	der, private := sign(t, template, a.cert, a.key)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write(t, key, "PRIVATE KEY", encoded)
	write(t, cert, "CERTIFICATE", der)
	return cert, key
}

// Client returns the configuration of a client that trusts the authority. It has a certificate with
// some names; without names it has none.
func (a *Authority) Client(t *testing.T, names ...string) *tls.Config {
	t.Helper()
	cfg := &tls.Config{RootCAs: a.Pool(), MinVersion: tls.VersionTLS12}
	if len(names) == 0 {
		return cfg
	}
	pair, err := tls.LoadX509KeyPair(a.Issue(t, t.TempDir(), names[0], names...))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return cfg
}

// certificate returns the template of a certificate that is valid now.
func certificate(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // never fails
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
	}
}

// sign makes a key and its certificate. Without an authority the certificate signs itself.
func sign(t *testing.T, template, authority *x509.Certificate, by *ecdsa.PrivateKey) (der []byte, key *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if authority == nil {
		authority, by = template, key
	}
	if der, err = x509.CreateCertificate(rand.Reader, template, authority, &key.PublicKey, by); err != nil {
		t.Fatal(err)
	}
	return der, key
}

// write writes a file in PEM, and replaces an earlier one with a rename.
func write(t *testing.T, name, kind string, der []byte) {
	t.Helper()
	err := os.WriteFile(name+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		t.Fatal(err)
	}
}
