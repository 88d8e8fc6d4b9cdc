package client

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Config configures a client. Only URL is required.
type Config struct {
	// URL is the URL of the server without /v1, such as https://agents.example.
	URL string
	// Token is a token or an API key. It is sent as Authorization: Bearer.
	Token string
	// Header is sent with every request.
	Header http.Header
	// HTTP sends the requests; nil = http.DefaultClient. It must have no Timeout, which would cut
	// streams.
	HTTP *http.Client
	// RetryWindow is how long the client retries, counted from the first failure, if a server that
	// it has reached before cannot be reached, or answers 503 or 429 with Retry-After. 0 =
	// defaultRetryWindow, 5 minutes; negative = no retries.
	RetryWindow time.Duration
	// IdleTimeout is how long a connection may receive nothing before it counts as lost. The server
	// sends a heartbeat every 15 s. An upload may take 2 minutes without progress, or this time if it is
	// longer. 0 = defaultIdleTimeout, 45 s.
	IdleTimeout time.Duration
	// OnRetry is called before each pause, if it is not nil. It must not block, and may be called
	// concurrently by several requests.
	OnRetry func(err error, pause time.Duration)
}

const (
	defaultRetryWindow = 5 * time.Minute
	defaultIdleTimeout = 45 * time.Second
)

// Client is a client of one server. It has no state that must be closed, and is safe for concurrent
// use.
type Client struct {
	config Config
	base   string
	// hasReached is set when the server has answered once. Before that, a server that cannot be
	// reached is not retried: the URL may be wrong.
	hasReached   atomic.Bool
	acknowledged acknowledgedCursors
}

// New returns a client, or an error if the configuration is invalid. It sends no request.
func New(config Config) (*Client, error) {
	base, err := url.Parse(config.URL)
	if err != nil {
		return nil, fmt.Errorf("client: URL: %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("client: URL must be like http://host:port, not %q", config.URL)
	}
	if base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("client: URL must have no query and no fragment: %q", config.URL)
	}
	if config.HTTP == nil {
		config.HTTP = http.DefaultClient
	}
	if config.RetryWindow == 0 {
		config.RetryWindow = defaultRetryWindow
	}
	if config.IdleTimeout == 0 {
		config.IdleTimeout = defaultIdleTimeout
	}
	return &Client{config: config, base: strings.TrimRight(base.String(), "/")}, nil
}

// path returns the escaped path of segments, each of which may be any text.
func path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}
