package client

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Config says where a server is, and how it is asked. Only URL is needed.
type Config struct {
	// URL is what stands before /v1, such as https://agents.example.
	URL string
	// Token is a token or a key, sent as Authorization: Bearer.
	Token string
	// Header is sent with every request.
	Header http.Header
	// HTTP makes the requests; nil means http.DefaultClient. A Timeout of its own would cut streams.
	HTTP *http.Client
	// Patience is how long a server is asked again that was reached before and is not any more, or that
	// answers 503; counted from the first failure in a row. 0 means 5 minutes; negative: ask once.
	Patience time.Duration
	// Silence is how long nothing may come before a connection is taken for lost. The server sends something
	// every 15 s. 0 means 45 s.
	Silence time.Duration
	// OnRetry, if not nil, is told before each pause; it must not block.
	OnRetry func(err error, pause time.Duration)
}

const (
	defaultPatience = 5 * time.Minute
	defaultSilence  = 45 * time.Second
)

// Client asks one server. It is safe for concurrent use.
type Client struct {
	config Config
	base   string
	// reached tells that the server was there. Until then nobody waits for it: the address may be wrong.
	reached      atomic.Bool
	acknowledged acknowledged
}

// New checks the configuration. It does not ask the server.
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
	if config.Patience == 0 {
		config.Patience = defaultPatience
	}
	if config.Silence == 0 {
		config.Silence = defaultSilence
	}
	return &Client{config: config, base: strings.TrimRight(base.String(), "/")}, nil
}

// path joins segments, each of which may be any text.
func path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}
