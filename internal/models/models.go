// Package models lists the model providers that a worker has, from the environment. It is the one
// place that links their SDKs.
package models

import (
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/openai"
	"github.com/perdure/perdure/llm/scripted"
)

// FromEnv returns the providers by the name that stands before the slash in an agent's model.
func FromEnv(getenv func(string) string) map[string]llm.Model {
	return map[string]llm.Model{
		"openai":   openai.New(openai.FromEnv(getenv)),
		"scripted": scripted.New(),
	}
}
