// Package announce publishes which tools and programs workers have, the public keys of their
// assertions, and the models that they do not call because their circuits are open, for API nodes and
// for other workers.
//
//	worker ──names of its tools, keys, every 10 s──► bucket ──watch──► Board of API and worker
//	       ──schemas of arguments, once────────────► bucket ──by digest──┘
//
// It decides nothing. An agent with a tool or a program that no worker announces is published with
// a warning, since its worker may start later. Runs of such an agent wait some time for the tool.
package announce

import (
	"time"

	"github.com/perdure/perdure/internal/workers/assertion"
	"github.com/perdure/perdure/tools"
)

// bucket has one key for each worker, with its announced names. schemas has the schemas of
// arguments and the descriptions of tools, under their digests.
const (
	bucket       = "tools"
	schemaBucket = "tool_schemas"
)

// Worker describes a worker process.
type Worker struct {
	// Name is unique to the process.
	Name string `json:"name"`
	// Version is that of Perdure in the process (version.Info).
	Version string `json:"version"`
	// Deployment and BuildID are the version in Temporal; "" = the worker is not versioned.
	Deployment string `json:"deployment,omitempty"`
	BuildID    string `json:"buildId,omitempty"`
	// Queues are the task queues that the worker serves.
	Queues []string `json:"queues"`
}

// announcedNames are what one worker announces: the value of its key in the bucket.
type announcedNames struct {
	Worker   Worker   `json:"worker"`
	Tools    []Tool   `json:"tools"`
	Programs []string `json:"programs,omitempty"` // agents that are Go workflow functions
	// Providers are the model providers that are configured, and Scripts those of the provider
	// scripted.
	Providers []string `json:"providers,omitempty"`
	Scripts   []string `json:"scripts,omitempty"`

	Circuits []Circuit `json:"circuits,omitempty"` // sorted by model

	Keys []assertion.PublicKey `json:"keys,omitempty"` // of the worker's assertions
}

// Tool is what a worker announces about one of its tools.
type Tool struct {
	// Name is the tool's name for agents.
	Name string `json:"name"`
	// Schema is the digest of the schema of its arguments; "" = it accepts any.
	Schema string `json:"schema,omitempty"`
	// Queue is the task queue of its calls; "" = that of all workers.
	Queue string `json:"queue,omitempty"`
	// Server is the MCP server that has the tool, and Own the server's own name of it. Spec is the
	// digest of the tool's description, for workers without that server. All are "" for other
	// tools.
	Server string `json:"server,omitempty"`
	Own    string `json:"own,omitempty"`
	Spec   string `json:"spec,omitempty"`
}

// Circuit is a circuit breaker of a worker that is not closed.
type Circuit struct {
	// Model is provider/model, and State is open or half-open.
	Model string    `json:"model"`
	State string    `json:"state"`
	Since time.Time `json:"since"`
}

// Offer is a tool to announce. Server is its MCP server, and Own the server's own name of it; both
// are "" for other tools.
type Offer struct {
	Server, Own string
	Spec        tools.Spec
}

// A worker writes its announcement at least every renewInterval; it expires after announcementTTL,
// the TTL of the bucket. Each checkInterval the worker checks whether its tools or circuits have
// changed, and then writes at once.
const (
	renewInterval   = 10 * time.Second
	announcementTTL = 3 * renewInterval
	checkInterval   = time.Second
)
