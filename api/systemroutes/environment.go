package systemroutes

import (
	"encoding/json"
	"net/url"
	"time"
)

// Environment describes the process of the API and the servers that it uses. Its values come from
// the configuration of the operator.
type Environment struct {
	// Mode is the name of the program: "api" or "perdure dev".
	Mode string
	// NeedsToken tells that requests without a session need a token or a key.
	NeedsToken bool
	// TemporalAddress is the address of Temporal's frontend, and TemporalNamespace the namespace.
	TemporalAddress, TemporalNamespace string
	// TemporalUI is the base of URLs in Temporal's UI, without a slash at its end, and TraceURL the
	// template of URLs of traces; "" = there are none.
	TemporalUI, TraceURL string
}

// Links returns the templates of links.
func (e Environment) Links() Links {
	l := Links{Trace: e.TraceURL}
	if e.TemporalUI != "" {
		l.Workflow = e.TemporalUI + "/namespaces/" + url.PathEscape(e.TemporalNamespace) + "/workflows/{workflowId}"
	}
	return l
}

// Links are templates of URLs. Names in braces stand for percent-encoded values.
type Links struct {
	// Workflow is the page of a workflow in Temporal's UI: {workflowId}.
	Workflow string `json:"workflow,omitempty"`
	// Trace is the trace of a run: {runId}, {threadId}.
	Trace string `json:"trace,omitempty"`
}

// Worker is a worker process that announces itself.
type Worker struct {
	Name       string    `json:"name"`
	Version    string    `json:"version"`
	Deployment string    `json:"deployment,omitempty"`
	BuildID    string    `json:"buildId,omitempty"`
	Queues     []string  `json:"queues"`
	Tools      []string  `json:"tools"`
	Programs   []string  `json:"programs,omitempty"`
	SeenAt     time.Time `json:"seenAt"` // of the last announcement
}

// Check is the result of one readiness check.
type Check struct {
	Name string
	Err  error // nil = ready; otherwise its text is for operators
}

// MarshalJSON implements json.Marshaler.
func (c Check) MarshalJSON() ([]byte, error) {
	shown := struct {
		Name   string `json:"name"`
		Ready  bool   `json:"ready"`
		Detail string `json:"detail,omitempty"`
	}{Name: c.Name, Ready: c.Err == nil}
	if c.Err != nil {
		shown.Detail = c.Err.Error()
	}
	return json.Marshal(shown)
}

// Node is what one API process serves now, and its limits.
type Node struct {
	Streams    int `json:"streams"`
	MaxStreams int `json:"maxStreams"`
	Sockets    int `json:"sockets"`
	MaxSockets int `json:"maxSockets"`
}
