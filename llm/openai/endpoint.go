package openai

import (
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// DefaultBaseURL is OpenAI's own endpoint.
const DefaultBaseURL = "https://api.openai.com/v1"

const (
	envAPIKey  = "OPENAI_API_KEY"
	envBaseURL = "OPENAI_BASE_URL"
)

// Config says where completions come from. The zero value is OpenAI without a
// key, which fails at each call.
type Config struct {
	// APIKey is sent as a bearer token. OpenAI wants one; with another BaseURL
	// it may be empty, and no Authorization header is sent then.
	APIKey string

	// BaseURL is the endpoint up to and including /v1. Defaults to [DefaultBaseURL].
	BaseURL string

	// Provider is the name that [llm.Finish] carries. Defaults to "openai", and
	// for [Responses] to "openai-responses".
	Provider string

	// MaxTokensField is the member that carries [llm.Request.MaxOutputTokens] in
	// Chat Completions. Defaults to max_completion_tokens for OpenAI, which takes
	// no other for its reasoning models, and to max_tokens elsewhere, which all
	// servers know.
	MaxTokensField string

	// HTTPClient makes the requests; it must not retry, and a Timeout of its
	// own cuts long completions. Defaults to [http.DefaultClient].
	HTTPClient *http.Client
}

// FromEnv reads OPENAI_API_KEY and OPENAI_BASE_URL.
func FromEnv(getenv func(string) string) Config {
	return Config{
		APIKey:  strings.TrimSpace(getenv(envAPIKey)),
		BaseURL: strings.TrimSpace(getenv(envBaseURL)),
	}
}

// endpoint is the server that a model talks to, whichever API it uses there.
type endpoint struct {
	config Config
	client openai.Client
	limits wire.Limits

	api wire.API

	// refusal is a mistake in the configuration, reported at each call; nil = none.
	refusal *llm.Error
}

func newEndpoint(config Config, limits wire.Limits) endpoint {
	config.BaseURL = strings.TrimRight(config.BaseURL, "/")
	if config.BaseURL == "" {
		config.BaseURL = DefaultBaseURL
	}
	limits = limits.WithDefaults()
	server := wire.Server{
		BaseURL: config.BaseURL, Default: config.BaseURL == DefaultBaseURL, HasKey: config.APIKey != "",
		KeyVariable: envAPIKey, BaseVariable: envBaseURL,
	}
	return endpoint{
		config:  config,
		limits:  limits,
		api:     wire.API{Server: server, Key: config.APIKey, ParseFault: parseFault},
		refusal: server.Check(),
		// Not openai.NewClient: it reads a dozen variables of the process's
		// environment (headers, organization, admin key) behind our back.
		client: openai.Client{Options: []option.RequestOption{
			option.WithBaseURL(config.BaseURL),
			option.WithAPIKey(config.APIKey),
			option.WithHTTPClient(limits.Client(config.HTTPClient)),
			option.WithMaxRetries(0),
		}},
	}
}
