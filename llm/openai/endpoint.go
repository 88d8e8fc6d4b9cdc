package openai

import (
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// DefaultBaseURL is OpenAI's API.
const DefaultBaseURL = "https://api.openai.com/v1"

// The environment variables that [FromEnv] reads.
const (
	envAPIKey  = "OPENAI_API_KEY"
	envBaseURL = "OPENAI_BASE_URL"
)

// Config configures a [Model] or [Responses]. The zero value is OpenAI's API without a key: each
// call fails.
type Config struct {
	// APIKey is sent as a bearer token. OpenAI requires it. With another BaseURL it may be empty;
	// the Authorization header is then omitted.
	APIKey string

	// BaseURL is the URL of the API up to and including /v1. Defaults to [DefaultBaseURL].
	BaseURL string

	// Provider is the name in [llm.Finish] and [llm.Reasoning]. Defaults to "openai", and for
	// [Responses] to "openai-responses". Reasoning is sent back only to a model with the same
	// Provider.
	Provider string

	// MaxTokensField is the member for [llm.Request.MaxOutputTokens] in Chat Completions. Defaults
	// to max_completion_tokens for OpenAI, whose reasoning models accept no other. For other
	// servers it defaults to max_tokens, which all of them know.
	MaxTokensField string

	// HTTPClient sends the requests. It must not retry, and its Timeout would also end long
	// completions. Defaults to [http.DefaultClient]. The caller owns and closes it.
	HTTPClient *http.Client
}

// FromEnv returns the configuration in OPENAI_API_KEY and OPENAI_BASE_URL, without surrounding
// space.
func FromEnv(getenv func(string) string) Config {
	return Config{
		APIKey:  strings.TrimSpace(getenv(envAPIKey)),
		BaseURL: strings.TrimSpace(getenv(envBaseURL)),
	}
}

// endpoint is the server of a model. [Model] and [Responses] embed it. It is immutable and safe for
// concurrent use.
type endpoint struct {
	config Config // with defaults
	client openai.Client
	limits wire.Limits

	api wire.API // for errors

	// refusal is the error of an invalid configuration, returned by each call; nil = valid.
	refusal *llm.Error
}

// newEndpoint returns the endpoint for config. Zero fields of limits become their defaults.
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
		// Not openai.NewClient: that reads a dozen environment variables (headers, organization,
		// admin key), which Config must determine alone.
		client: openai.Client{Options: []option.RequestOption{
			option.WithBaseURL(config.BaseURL),
			option.WithAPIKey(config.APIKey),
			option.WithHTTPClient(limits.Client(config.HTTPClient)),
			option.WithMaxRetries(0),
		}},
	}
}
