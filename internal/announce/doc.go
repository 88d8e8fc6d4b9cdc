// Package announce tells apis which tools there are workers for.
//
//	worker ──names of its tools, every 10 s──► bucket ──watch──► api
//	       ──schemas of their arguments, once─► bucket ──by digest─┘
//
// It decides nothing: an agent whose tools nobody announces is published with a warning, since its worker
// may be on its way, and its runs wait a while for one.
package announce

import "time"

// bucket holds what a worker has under the worker's key, schemas the schemas of arguments under their digest.
const (
	bucket  = "tools"
	schemas = "tool_schemas"
)

// Tool is what a worker says of one of its tools. Schema is the digest of that of its arguments; empty = any fit.
type Tool struct {
	Name   string `json:"name"`
	Schema string `json:"schema,omitempty"`
}

// interval is how often a worker says what it has; what it said lasts for three of them.
const (
	interval = 10 * time.Second
	lasting  = 3 * interval
)
