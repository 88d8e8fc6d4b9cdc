// Package models lists the model providers that a worker has, from the environment. It is the one
// place that links their SDKs.
package models

import (
	"net/http"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/openai"
	"github.com/perdure/perdure/llm/scripted"
)

// FromEnv returns the providers by the name that stands before the slash in an agent's model.
func FromEnv(getenv func(string) string) map[string]llm.Model {
	config := openai.FromEnv(getenv)
	config.HTTPClient = &http.Client{Transport: transport()}
	return map[string]llm.Model{
		"openai":           openai.New(config),
		"openai-responses": openai.NewResponses(config),
		"scripted":         scripted.New(),
	}
}

// idleConnections to one provider are kept: by default two are, and each further call at the same
// time would pay for a connection of its own.
const idleConnections = 256

func transport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // somebody's own, which knows what it wants
		return http.DefaultTransport
	}
	t = t.Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConnections, idleConnections
	return t
}
