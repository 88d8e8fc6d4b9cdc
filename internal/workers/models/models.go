// Package models lists the model providers that a worker has, from the environment. It is the one
// place that links their SDKs.
package models

import (
	"net/http"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/transport/egress"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/anthropic"
	"github.com/perdure/perdure/llm/gemini"
	"github.com/perdure/perdure/llm/openai"
	"github.com/perdure/perdure/llm/scripted"
)

// DefaultSilence is how long a model may say nothing, in the middle of an answer or before it. Some
// think for minutes.
const DefaultSilence = 5 * time.Minute

// Options say which providers a worker has and how they behave.
type Options struct {
	// Getenv reads the environment variables of the providers.
	Getenv func(string) string
	// Silence is how long a call may go without a chunk. It then fails with llm.CodeTimeout.
	Silence time.Duration
	// Scripts are played by the scripted provider, in addition to its own.
	Scripts []*agents.Script
	// Secrets are replaced in what providers say about a failure.
	Secrets []string
	// FailFast makes a host final that cannot be reached (refused, unknown, without TLS, or without
	// a valid certificate) and has not answered since the process began: the configuration is most
	// likely wrong, and a developer waits. Once it has answered, such a failure is retryable.
	FailFast bool
}

// FromEnv returns the providers by the name that stands before the slash in an agent's model.
func FromEnv(o Options) map[string]llm.Model {
	hosts := &hosts{next: transport()}
	client := &http.Client{Transport: egress.Traced(hosts)}
	ofAnthropic, ofGemini, ofOpenAI := anthropic.FromEnv(o.Getenv), gemini.FromEnv(o.Getenv), openai.FromEnv(o.Getenv)
	ofAnthropic.HTTPClient, ofGemini.HTTPClient, ofOpenAI.HTTPClient = client, client, client
	providers := map[string]llm.Model{
		"anthropic":        anthropic.New(ofAnthropic),
		"gemini":           gemini.New(ofGemini),
		"openai":           openai.New(ofOpenAI),
		"openai-responses": openai.NewResponses(ofOpenAI),
		"scripted":         scripted.New(append(scripted.Builtin(), dialogs(o.Scripts)...)...),
	}
	for name, model := range providers {
		providers[name] = classified{model: llm.LimitSilence(model, o.Silence), hosts: hosts, failFast: o.FailFast, secrets: o.Secrets}
	}
	return providers
}

// dialogs returns the scripts that files define.
func dialogs(defined []*agents.Script) []scripted.Script {
	var scripts []scripted.Script
	for _, d := range defined {
		var turns []scripted.Turn
		for _, t := range d.Turns {
			turn := scripted.Turn{When: t.When}
			for _, s := range t.Steps {
				answer := scripted.Answer{Say: s.Say}
				for _, c := range s.Calls {
					answer.Calls = append(answer.Calls, scripted.Call(c))
				}
				turn.Steps = append(turn.Steps, answer)
			}
			turns = append(turns, turn)
		}
		scripts = append(scripts, scripted.Dialog(d.Name, scripted.DefaultPace, turns...))
	}
	return scripts
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
