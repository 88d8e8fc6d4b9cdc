package toolset

import (
	"errors"
	"sync/atomic"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/tools"
)

// Lookup returns the tools of an MCP server that workers of a task queue have. It is called
// concurrently.
type Lookup func(server, queue string) ([]tools.Offer, error)

// remoteServer is an MCP server on a task queue that this worker does not serve. Its tools are
// those that workers of the queue announce. It is safe for concurrent use.
type remoteServer struct {
	declared *agents.Server
	// lookUp is nil until LookElsewhere.
	lookUp atomic.Pointer[Lookup]
}

var errToolsUnknown = errors.New("the tools of the server are not known yet")

// Name implements [tools.Source].
func (e *remoteServer) Name() string { return e.declared.Name }

// Origin implements [tools.Source].
func (e *remoteServer) Origin() string { return e.declared.Position.String() }

// Offers implements [tools.Source].
func (e *remoteServer) Offers() ([]tools.Offer, error) {
	lookUp := e.lookUp.Load()
	if lookUp == nil {
		return nil, errToolsUnknown
	}
	return (*lookUp)(e.declared.Name, e.declared.TaskQueue)
}
