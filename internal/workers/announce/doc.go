// Package announce tells apis, and other workers, which tools there are workers for.
//
//	worker ──names of its tools, every 10 s──► bucket ──watch──► api, worker
//	       ──schemas of their arguments, once─► bucket ──by digest─┘
//
// It decides nothing: an agent whose tools nobody announces is published with a warning, since its
// worker may be on its way, and its runs wait a while for one.
package announce

import (
	"time"

	"github.com/perdure/perdure/tools"
)

// bucket holds what a worker has under the worker's key, schemas the schemas of arguments, and
// descriptions of tools, under their digest.
const (
	bucket  = "tools"
	schemas = "tool_schemas"
)

// Tool is what a worker says of one of its tools. Schema is the digest of that of its arguments;
// empty = any fit.
type Tool struct {
	Name   string `json:"name"`
	Schema string `json:"schema,omitempty"`
	// Queue is the task queue that calls of it go to; empty = that of all workers.
	Queue string `json:"queue,omitempty"`
	// Server is the MCP server that has the tool, Own what it calls it, and Spec the digest of the
	// tool's description, for workers that do not have the server.
	Server string `json:"server,omitempty"`
	Own    string `json:"own,omitempty"`
	Spec   string `json:"spec,omitempty"`
}

// Offer is a tool that a worker has: Own is what the MCP server Server calls it, or both are empty.
type Offer struct {
	Server, Own string
	Spec        tools.Spec
}

// interval is how often a worker says what it has; what it said lasts for three of them. lookAround
// is how soon it says that it has something else.
const (
	interval   = 10 * time.Second
	lasting    = 3 * interval
	lookAround = time.Second
)
