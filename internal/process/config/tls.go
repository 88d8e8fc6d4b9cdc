package config

import (
	"errors"
	"fmt"
	"net/url"
)

// TLS names the files, in PEM, with which the API serves TLS.
type TLS struct {
	// Cert has the certificate of the server, and those of the authorities between it and the root;
	// "" = the API serves plain HTTP. Key has its private key.
	Cert, Key string
	// ClientCA has the authorities of clients; "" = clients need no certificate.
	ClientCA string
	// ClientNames are the names of which a client's certificate must have one, as a DNS name or a
	// URI; nil = every certificate of ClientCA is accepted.
	ClientNames []string
}

// namesClients reports whether only clients with certain certificates can connect.
func (t TLS) namesClients() bool { return t.ClientCA != "" && len(t.ClientNames) > 0 }

// check reports the settings that are missing.
func (t TLS) check() error {
	missing := func(name, other string) error {
		return &VariableError{Name: name, Err: errors.New("must be set when " + other + " is")}
	}
	switch {
	case t.Cert == "" && t.Key != "":
		return missing("PERDURE_TLS_CERT_FILE", "PERDURE_TLS_KEY_FILE")
	case t.Cert != "" && t.Key == "":
		return missing("PERDURE_TLS_KEY_FILE", "PERDURE_TLS_CERT_FILE")
	case t.Cert == "" && t.ClientCA != "":
		return missing("PERDURE_TLS_CERT_FILE", "PERDURE_TLS_CLIENT_CA_FILE")
	case t.ClientCA == "" && t.ClientNames != nil:
		return missing("PERDURE_TLS_CLIENT_CA_FILE", "PERDURE_TLS_CLIENT_NAMES")
	}
	return nil
}

// certificateNames parses a list of names in certificates: DNS names and URIs.
func certificateNames(s string) ([]string, error) {
	list, err := wordList(s)
	if err != nil {
		return nil, err
	}
	for _, name := range list {
		u, err := url.Parse(name)
		if isURI := err == nil && u.Scheme != "" && u.Host != ""; !isURI && (name == "*" || !hostPattern.MatchString(name)) {
			return nil, fmt.Errorf("%q is not a DNS name or a URI, such as proxy.example or spiffe://example/proxy", name)
		}
	}
	return list, nil
}
