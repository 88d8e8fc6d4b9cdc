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

// DefaultBaseURL is Google's Gemini API.
const DefaultBaseURL = "https://generativelanguage.googleapis.com"

// The environment variables that [FromEnv] reads.
const (
	envGoogleKey = "GOOGLE_API_KEY"
	envAPIKey    = "GEMINI_API_KEY"
	envBaseURL   = "GEMINI_BASE_URL"
)

// Config configures a [Model]. The zero value is Google's API without a key: each call fails.
type Config struct {
	// APIKey is sent as x-goog-api-key. Google requires it. With another BaseURL it may be empty;
	// the header is then omitted.
	APIKey string

	// BaseURL is the URL of the API up to, but without, /v1beta. Defaults to [DefaultBaseURL].
	BaseURL string

	// Provider is the name in [llm.Finish] and [llm.Reasoning]. Defaults to "gemini". Signatures
	// are sent back only to a model with the same Provider.
	Provider string

	// HTTPClient sends the requests. It must not retry, and its Timeout would also end long
	// completions. Defaults to [http.DefaultClient]. The caller owns and closes it.
	HTTPClient *http.Client
}

// FromEnv returns the configuration in GOOGLE_API_KEY or GEMINI_API_KEY, and GEMINI_BASE_URL.
// GOOGLE_API_KEY takes precedence, as in Google's SDKs.
func FromEnv(getenv func(string) string) Config {
	return Config{
		APIKey:  cmp.Or(strings.TrimSpace(getenv(envGoogleKey)), strings.TrimSpace(getenv(envAPIKey))),
		BaseURL: strings.TrimSpace(getenv(envBaseURL)),
	}
}

// Model is an [llm.Model] for the Gemini API. It is immutable and safe for concurrent use; it needs
// no closing.
type Model struct {
	config Config
	client *http.Client // with limits
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
// call.
func New(config Config) *Model {
	return newModel(config, wire.Limits{})
}

// newModel is New with limits, which tests lower.
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
