package gemini

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"strings"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// DefaultBaseURL is Google's own endpoint.
const DefaultBaseURL = "https://generativelanguage.googleapis.com"

const (
	envGoogleKey = "GOOGLE_API_KEY"
	envAPIKey    = "GEMINI_API_KEY"
	envBaseURL   = "GEMINI_BASE_URL"
)

// Config says where completions come from. The zero value is Google without a
// key, which fails at each call.
type Config struct {
	// APIKey is sent as x-goog-api-key. Google wants one; with another BaseURL
	// it may be empty, and no such header is sent then.
	APIKey string

	// BaseURL is the endpoint up to, but without, /v1beta. Defaults to [DefaultBaseURL].
	BaseURL string

	// Provider is the name that [llm.Finish] and [llm.Reasoning] carry. Defaults
	// to "gemini". Signatures go back only to the provider of their name.
	Provider string

	// HTTPClient makes the requests; it must not retry, and a Timeout of its
	// own cuts long completions. Defaults to [http.DefaultClient].
	HTTPClient *http.Client
}

// FromEnv reads GOOGLE_API_KEY, which as with Google's SDKs goes before
// GEMINI_API_KEY, and GEMINI_BASE_URL.
func FromEnv(getenv func(string) string) Config {
	return Config{
		APIKey:  cmp.Or(strings.TrimSpace(getenv(envGoogleKey)), strings.TrimSpace(getenv(envAPIKey))),
		BaseURL: strings.TrimSpace(getenv(envBaseURL)),
	}
}

// Model is an [llm.Model] over the Gemini API.
type Model struct {
	config Config
	client *http.Client
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
	config.BaseURL = cmp.Or(strings.TrimRight(config.BaseURL, "/"), DefaultBaseURL)
	config.Provider = cmp.Or(config.Provider, "gemini")
	limits = limits.WithDefaults()
	server := wire.Server{
		BaseURL: config.BaseURL, Default: config.BaseURL == DefaultBaseURL, HasKey: config.APIKey != "",
		KeyVariable: envAPIKey + " or " + envGoogleKey, BaseVariable: envBaseURL,
	}
	return &Model{
		config:  config,
		limits:  limits,
		api:     wire.API{Server: server, Key: config.APIKey, ParseFault: parseFault},
		refusal: server.Check(),
		client:  limits.Client(config.HTTPClient),
	}
}

// Stream implements [llm.Model].
func (m *Model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if err := m.stream(ctx, req, yield); err != nil {
			yield(nil, m.api.Explain(wire.Ended(ctx, err)))
		}
	}
}
