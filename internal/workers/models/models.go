// Package models makes the model providers of a worker from the environment. It is the only package
// that links their SDKs.
package models

import (
	"context"
	"iter"
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

// DefaultSilence is how long a model may send nothing, before its answer or within it. Some models
// think for minutes.
const DefaultSilence = 5 * time.Minute

// Options configure the providers of a worker.
type Options struct {
	// Getenv reads the environment variables of the providers. Each call of a model reads them, so
	// that a new key is used at once. It must be safe for concurrent use.
	Getenv func(string) string
	// Silence is how long a call may last without a chunk. Then it fails with llm.CodeTimeout.
	Silence time.Duration
	// Scripts are scripts for the provider "scripted", in addition to its own.
	Scripts []*agents.Script
	// Secrets returns what is replaced in the messages of failures, because providers may quote the
	// API key; nil = nothing. It must be safe for concurrent use.
	Secrets func() []string
	// FailFast makes a failure final if a host cannot be reached (refused, unknown, without TLS, or
	// without a valid certificate) and has not answered since the process began. The configuration
	// is probably wrong, and a developer waits for the run. After the first answer of the host,
	// such a failure is retryable.
	FailFast bool
}

// FromEnv returns the providers by name: the part before the slash in an agent's model. All share
// one HTTP client, and each is safe for concurrent use.
func FromEnv(o Options) map[string]llm.Model {
	hosts := &answeringHosts{next: transport()}
	client := &http.Client{Transport: egress.Traced(hosts)}
	providers := map[string]llm.Model{
		"anthropic": current(func() llm.Model {
			config := anthropic.FromEnv(o.Getenv)
			config.HTTPClient = client
			return anthropic.New(config)
		}),
		"gemini": current(func() llm.Model {
			config := gemini.FromEnv(o.Getenv)
			config.HTTPClient = client
			return gemini.New(config)
		}),
		"openai": current(func() llm.Model {
			config := openai.FromEnv(o.Getenv)
			config.HTTPClient = client
			return openai.New(config)
		}),
		"openai-responses": current(func() llm.Model {
			config := openai.FromEnv(o.Getenv)
			config.HTTPClient = client
			return openai.NewResponses(config)
		}),
		"scripted": scripted.New(append(scripted.Builtin(), dialogs(o.Scripts)...)...),
	}
	for name, model := range providers {
		providers[name] = classified{model: llm.LimitSilence(model, o.Silence), hosts: hosts, failFast: o.FailFast, secrets: o.Secrets}
	}
	return providers
}

// Names returns the providers that are configured now, by an API key or by the URL of a server, which
// may need no key, and the scripts of the provider "scripted".
func (o Options) Names() agents.Names {
	names := agents.Names{Providers: []string{"scripted"}}
	if c := anthropic.FromEnv(o.Getenv); c.APIKey+c.BaseURL != "" {
		names.Providers = append(names.Providers, "anthropic")
	}
	if c := gemini.FromEnv(o.Getenv); c.APIKey+c.BaseURL != "" {
		names.Providers = append(names.Providers, "gemini")
	}
	if c := openai.FromEnv(o.Getenv); c.APIKey+c.BaseURL != "" {
		names.Providers = append(names.Providers, "openai", "openai-responses")
	}
	for _, s := range append(scripted.Builtin(), dialogs(o.Scripts)...) {
		names.Scripts = append(names.Scripts, s.Name)
	}
	return names
}

// current is a model that is made again for each call, from the environment at that time. It makes
// no connection: the HTTP client keeps them.
type current func() llm.Model

// Stream implements [llm.Model].
func (c current) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) { c().Stream(ctx, req)(yield) }
}

// dialogs returns the scripts of definitions as scripts of the provider "scripted".
func dialogs(defined []*agents.Script) []scripted.Script {
	var scripts []scripted.Script
	for _, d := range defined {
		var turns []scripted.Turn
		for _, t := range d.Turns {
			turn := scripted.Turn{When: t.When, Media: llm.MediaKind(t.Media)}
			for _, s := range t.Steps {
				answer := scripted.Answer{Think: s.Think, Say: s.Say}
				for _, c := range s.Calls {
					answer.Calls = append(answer.Calls, scripted.Call(c))
				}
				turn.Steps = append(turn.Steps, answer)
			}
			turns = append(turns, turn)
		}
		pace := scripted.DefaultPace
		if d.Pace != nil {
			pace = *d.Pace
		}
		scripts = append(scripts, scripted.Dialog(d.Name, pace, turns...))
	}
	return scripts
}

// idleConnections is how many idle connections to one host are kept. net/http keeps two by default;
// further concurrent calls would each open a connection.
const idleConnections = 256

// transport returns a copy of the default transport with more idle connections.
func transport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // a program has replaced the default transport: its choice stays
		return http.DefaultTransport
	}
	t = t.Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConnections, idleConnections
	return t
}
