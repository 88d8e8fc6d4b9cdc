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
	// Token is a token or an API key, sent as Authorization: Bearer.
	Token string
	// Header is sent with every request.
	Header http.Header
	// HTTP makes the requests; nil means http.DefaultClient. It must have no Timeout, which would
	// cut streams.
	HTTP *http.Client
	// Patience is how long the client retries with a server that it has reached before and cannot
	// reach now, or that answers 503, from the first failure on. 0 means 5 minutes; negative: no
	// retries.
	Patience time.Duration
	// Silence is how long a connection may be silent before it counts as lost. The server sends
	// something every 15 s. 0 means 45 s.
	Silence time.Duration
	// OnRetry is called before each pause, if it is not nil; it must not block.
	OnRetry func(err error, pause time.Duration)
}

const (
	defaultPatience = 5 * time.Minute
	defaultSilence  = 45 * time.Second
)

// Client is a client of one server. It is safe for concurrent use.
type Client struct {
	config Config
	base   string
	// reached tells that the server has answered once. Before that the client does not retry: the
	// address may be wrong.
	reached      atomic.Bool
	acknowledged acknowledged
}

// New returns a client, or an error if the configuration is invalid. It does not connect.
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

// path joins segments of any text to an escaped path.
func path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}
