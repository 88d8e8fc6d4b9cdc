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

// DefaultBaseURL is Anthropic's own endpoint.
const DefaultBaseURL = "https://api.anthropic.com"

const (
	envAPIKey  = "ANTHROPIC_API_KEY"
	envBaseURL = "ANTHROPIC_BASE_URL"
)

// Config says where completions come from. The zero value is Anthropic without
// a key, which fails at each call.
type Config struct {
	// APIKey is sent as x-api-key. Anthropic wants one; with another BaseURL it
	// may be empty, and no such header is sent then.
	APIKey string

	// BaseURL is the endpoint up to, but without, /v1. Defaults to [DefaultBaseURL].
	BaseURL string

	// Provider is the name that [llm.Finish] and [llm.Reasoning] carry. Defaults
	// to "anthropic". Thinking goes back only to the provider of its name.
	Provider string

	// HTTPClient makes the requests; it must not retry, and a Timeout of its
	// own cuts long completions. Defaults to [http.DefaultClient].
	HTTPClient *http.Client
}

// FromEnv reads ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL.
func FromEnv(getenv func(string) string) Config {
	return Config{
		APIKey:  strings.TrimSpace(getenv(envAPIKey)),
		BaseURL: strings.TrimSpace(getenv(envBaseURL)),
	}
}

// Model is an [llm.Model] over the Messages API.
type Model struct {
	config Config
	client anthropic.Client
	limits wire.Limits

	api wire.API

	// refusal is a mistake in the configuration, reported at each call; nil = none.
	refusal *llm.Error
}

var (
	_ llm.Model       = (*Model)(nil)
	_ llm.MediaReader = (*Model)(nil)
)

// New returns a model for config. It does not connect.
func New(config Config) *Model {
	return newModel(config, wire.Limits{})
}

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
		// Not anthropic.NewClient: it looks for credentials, profiles and headers
		// in the process's environment and the user's files behind our back.
		client: anthropic.Client{Options: options(config, limits)},
	}
}

func options(config Config, limits wire.Limits) []option.RequestOption {
	list := []option.RequestOption{
		option.WithBaseURL(config.BaseURL),
		option.WithHTTPClient(limits.Client(config.HTTPClient)),
		option.WithMaxRetries(0),
		option.WithoutOpenTelemetry(), // the call has a span of ours
	}
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
