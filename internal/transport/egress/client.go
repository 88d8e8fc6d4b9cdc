package egress

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	maxHeader        = 64 << 10
	maxRedirects     = 5
)

// Transport returns a transport that keeps the rules for addresses, or does not if private ones are
// allowed.
func Transport(allowPrivate bool) *http.Transport {
	return newTransport(newDialer(allowPrivate))
}

func newDialer(allowPrivate bool) *net.Dialer {
	dialer := &net.Dialer{Timeout: dialTimeout}
	if !allowPrivate {
		dialer.Control = control
	}
	return dialer
}

func newTransport(dialer *net.Dialer) *http.Transport {
	return &http.Transport{
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    handshakeTimeout,
		MaxResponseHeaderBytes: maxHeader,
		IdleConnTimeout:        time.Minute,
	}
}

// Hosts are those that a request may go to, each as host or host:port, in lower case. Without a
// port it is the scheme's own.
type Hosts []string

// Allow reports whether a URL's host is among them.
func (h Hosts) Allow(u *url.URL) bool {
	return slices.ContainsFunc(h, func(host string) bool { return canonical(u.Scheme, host) == HostOf(u) })
}

// HostOf returns host and port of a URL, in lower case; the scheme's own port is spelled out.
func HostOf(u *url.URL) string { return canonical(u.Scheme, u.Host) }

func canonical(scheme, host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if parsed := (&url.URL{Host: host}); parsed.Port() != "" {
		return host
	}
	return host + map[string]string{"http": ":80", "https": ":443"}[scheme]
}

// RedirectError says why a redirect was not followed.
type RedirectError struct {
	Reason string
}

func (e *RedirectError) Error() string { return "egress: " + e.Reason }

// Redirects returns a client's CheckRedirect. Headers that were given to the first host go to no
// other.
func Redirects(hosts Hosts, headers []string) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, before []*http.Request) error {
		first := before[0].URL
		switch {
		case len(before) > maxRedirects:
			return &RedirectError{Reason: fmt.Sprintf("there are more than %d redirects", maxRedirects)}
		case next.URL.Scheme != "https" && (next.URL.Scheme != "http" || before[len(before)-1].URL.Scheme == "https"):
			return &RedirectError{Reason: "a redirect leads away from https"}
		case next.URL.User != nil:
			return &RedirectError{Reason: "a redirect has a password in its URL"}
		case !hosts.Allow(next.URL):
			return &RedirectError{Reason: fmt.Sprintf("a redirect leads to %.100q, which is not allowed", next.URL.Host)}
		}
		next.Header.Del("Referer") // it would tell the arguments
		if HostOf(next.URL) != HostOf(first) {
			for _, name := range headers {
				next.Header.Del(name)
			}
		}
		return nil
	}
}

// Failure sorts out why a request got no answer.
type Failure int

// The reasons.
const (
	// Broken: the connection was made and did not hold. What the request asks for may have
	// happened.
	Broken Failure = iota
	// Unreached: there was no connection, so that nothing has happened.
	Unreached
	// Refused: it must not be made, or cannot be, and no other attempt changes that.
	Refused
)

// Explain returns the reason for an error of a client's, and words for it without addresses, URLs
// or headers.
func Explain(host string, err error) (Failure, string) {
	var private *PrivateAddressError
	var redirect *RedirectError
	var unknown *net.DNSError
	var dial *net.OpError
	switch {
	case errors.As(err, &private):
		return Refused, "the address of " + host + " is not of the public internet, which is not allowed"
	case errors.As(err, &redirect):
		return Refused, redirect.Reason
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return Refused, "there is no host " + host
	case certificateError(err):
		return Refused, "the certificate of " + host + " is not valid"
	case errors.As(err, &unknown) || errors.As(err, &dial) && dial.Op == "dial":
		return Unreached, host + " could not be reached; nothing was sent"
	}
	return Broken, "the connection to " + host + " broke off before there was an answer"
}
