package anthropic

import (
	"context"
	"iter"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// DefaultBaseURL is Anthropic's API.
const DefaultBaseURL = "https://api.anthropic.com"

// The environment variables that [FromEnv] reads.
const (
	envAPIKey  = "ANTHROPIC_API_KEY"
	envBaseURL = "ANTHROPIC_BASE_URL"
)

// Config configures a [Model]. The zero value is Anthropic's API without a key: each call fails.
type Config struct {
	// APIKey is sent as x-api-key. Anthropic requires it. With another BaseURL it may be empty; the
	// header is then omitted.
	APIKey string

	// BaseURL is the URL of the API up to, but without, /v1. Defaults to [DefaultBaseURL].
	BaseURL string

	// Provider is the name in [llm.Finish] and [llm.Reasoning]. Defaults to "anthropic". Thinking
	// blocks are sent back only to a model with the same Provider.
	Provider string

	// HTTPClient sends the requests. It must not retry, and its Timeout would also end long
	// completions. Defaults to [http.DefaultClient]. The caller owns and closes it.
	HTTPClient *http.Client
}

// FromEnv returns the configuration in ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL, without
// surrounding space.
func FromEnv(getenv func(string) string) Config {
	return Config{
		APIKey:  strings.TrimSpace(getenv(envAPIKey)),
		BaseURL: strings.TrimSpace(getenv(envBaseURL)),
	}
}

// Model is an [llm.Model] for the Messages API. It is immutable and safe for concurrent use; it
// needs no closing.
type Model struct {
	config Config
	client anthropic.Client
	limits wire.Limits

	api wire.API // for errors

	// refusal is the error of an invalid configuration, returned by each call; nil = valid.
	refusal *llm.Error
}

var (
	_ llm.Model       = (*Model)(nil)
	_ llm.MediaReader = (*Model)(nil)
)

// New returns a model for config. It does not connect. An invalid configuration is reported by each
// call, see [wire.Server.Check].
func New(config Config) *Model {
	return newModel(config, wire.Limits{})
}

// newModel is New with limits, which tests lower.
func newModel(config Config, limits wire.Limits) *Model {
	config.BaseURL = strings.TrimRight(config.BaseURL, "/")
	if config.BaseURL == "" {
		config.BaseURL = DefaultBaseURL
	}
	if config.Provider == "" {
		config.Provider = "anthropic"
	}
	limits = limits.WithDefaults()
	server := wire.Server{
		BaseURL: config.BaseURL, Default: config.BaseURL == DefaultBaseURL, HasKey: config.APIKey != "",
		KeyVariable: envAPIKey, BaseVariable: envBaseURL,
	}
	return &Model{
		config:  config,
		limits:  limits,
		api:     wire.API{Server: server, Key: config.APIKey, ParseFault: parseFault},
		refusal: server.Check(),
		// Not anthropic.NewClient: that reads credentials, profiles and headers from the
		// environment and the user's files, which Config must determine alone.
		client: anthropic.Client{Options: options(config, limits)},
	}
}

// options returns the SDK options of all requests.
func options(config Config, limits wire.Limits) []option.RequestOption {
	list := []option.RequestOption{
		option.WithBaseURL(config.BaseURL),
		option.WithHTTPClient(limits.Client(config.HTTPClient)),
		option.WithMaxRetries(0),
		option.WithoutOpenTelemetry(), // the caller records the span of the call
	}
	// Without this condition the SDK would send an empty x-api-key header.
	if config.APIKey != "" {
		list = append(list, option.WithAPIKey(config.APIKey))
	}
	return list
}

// Stream implements [llm.Model].
func (m *Model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if err := m.stream(ctx, req, yield); err != nil {
			yield(nil, m.api.Explain(wire.Ended(ctx, err)))
		}
	}
}
