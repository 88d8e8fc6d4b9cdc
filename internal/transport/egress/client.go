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

// Bounds of every request: durations of its phases, bytes of response headers, and the number of
// redirects.
const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	maxHeader        = 64 << 10
	maxRedirects     = 5
)

// NetworkPolicy says which addresses requests may reach. The zero value is PublicOnly.
type NetworkPolicy int

// The network policies.
const (
	// PublicOnly refuses addresses that are not on the public internet.
	PublicOnly NetworkPolicy = iota
	// AnyNetwork allows all addresses, also those of private networks and of this machine.
	AnyNetwork
)

// PolicyFor returns the policy of a configuration that allows private addresses, or does not.
func PolicyFor(allowPrivate bool) NetworkPolicy {
	if allowPrivate {
		return AnyNetwork
	}
	return PublicOnly
}

// Transport returns a transport with a network policy. It uses no proxy of the environment.
func Transport(policy NetworkPolicy) *http.Transport {
	return newTransport(newDialer(policy))
}

// newDialer returns the dialer of Transport.
func newDialer(policy NetworkPolicy) *net.Dialer {
	dialer := &net.Dialer{Timeout: dialTimeout}
	if policy == PublicOnly {
		dialer.Control = control
	}
	return dialer
}

// newTransport returns a transport with the bounds of this package.
func newTransport(dialer *net.Dialer) *http.Transport {
	return &http.Transport{
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    handshakeTimeout,
		MaxResponseHeaderBytes: maxHeader,
		IdleConnTimeout:        time.Minute,
	}
}

// Hosts are the hosts that a request may go to, each as host or host:port in lower case. Without a
// port it is the default port of the URL's scheme.
type Hosts []string

// Allow reports whether a URL's host is in the list.
func (h Hosts) Allow(u *url.URL) bool {
	return slices.ContainsFunc(h, func(host string) bool { return canonical(u.Scheme, host) == HostOf(u) })
}

// HostOf returns host:port of a URL in lower case. A default port is written out.
func HostOf(u *url.URL) string { return canonical(u.Scheme, u.Host) }

// canonical returns host:port in lower case, without a final dot, with the scheme's default port if
// there is none.
func canonical(scheme, host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if parsed := (&url.URL{Host: host}); parsed.Port() != "" {
		return host
	}
	return host + map[string]string{"http": ":80", "https": ":443"}[scheme]
}

// RedirectError reports why a redirect was not followed.
type RedirectError struct {
	Reason string
}

func (e *RedirectError) Error() string { return "egress: " + e.Reason }

// Redirects returns a CheckRedirect for [http.Client]: a redirect may lead to hosts only, and never
// from https to http. headers are names of headers for the first host; they are not sent to another
// host.
func Redirects(hosts Hosts, headers []string) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, before []*http.Request) error {
		first := before[0].URL
		switch {
		case len(before) > maxRedirects:
			return &RedirectError{Reason: fmt.Sprintf("there are more than %d redirects", maxRedirects)}
		case next.URL.Scheme != "https" && (next.URL.Scheme != "http" || before[len(before)-1].URL.Scheme == "https"):
			return &RedirectError{Reason: "a redirect leads from https to http"}
		case next.URL.User != nil:
			return &RedirectError{Reason: "a redirect has a password in its URL"}
		case !hosts.Allow(next.URL):
			return &RedirectError{Reason: fmt.Sprintf("a redirect leads to %.100q, which is not allowed", next.URL.Host)}
		}
		next.Header.Del("Referer") // it has the URL of the first request, with arguments of the call
		if HostOf(next.URL) != HostOf(first) {
			for _, name := range headers {
				next.Header.Del(name)
			}
		}
		return nil
	}
}

// Failure classifies why a request got no response.
type Failure int

// The values of Failure.
const (
	// Broken: the connection was made, and broke before the response. The request may have had its
	// effect.
	Broken Failure = iota
	// Unreached: there was no connection, so the request had no effect.
	Unreached
	// Refused: the request is not allowed or cannot be made, and a repetition would fail, too.
	Refused
)

// Explain classifies an error of an HTTP client, and describes it without addresses, URLs or
// headers.
func Explain(host string, err error) (Failure, string) {
	var privateErr *PrivateAddressError
	var redirectErr *RedirectError
	var dnsErr *net.DNSError
	var dialErr *net.OpError
	switch {
	case errors.As(err, &privateErr):
		return Refused, "the address of " + host + " is not on the public internet, which is not allowed"
	case errors.As(err, &redirectErr):
		return Refused, redirectErr.Reason
	case errors.As(err, &dnsErr) && dnsErr.IsNotFound:
		return Refused, "there is no host " + host
	case certificateError(err):
		return Refused, "the certificate of " + host + " is not valid"
	case errors.As(err, &dnsErr) || errors.As(err, &dialErr) && dialErr.Op == "dial":
		return Unreached, host + " could not be reached, and nothing was sent"
	}
	return Broken, "the connection to " + host + " was lost before the answer"
}
