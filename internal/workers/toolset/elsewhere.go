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

// elsewhere is an MCP server on a task queue that this worker does not serve. Its tools are those
// that workers of the queue announce. It is safe for concurrent use.
type elsewhere struct {
	declared *agents.Server
	// lookUp is nil until LookElsewhere.
	lookUp atomic.Pointer[Lookup]
}

var errUnknown = errors.New("the tools of the server are not known yet")

// Name implements [tools.Source].
func (e *elsewhere) Name() string { return e.declared.Name }

// Origin implements [tools.Source].
func (e *elsewhere) Origin() string { return e.declared.Place.String() }

// Offers implements [tools.Source].
func (e *elsewhere) Offers() ([]tools.Offer, error) {
	lookUp := e.lookUp.Load()
	if lookUp == nil {
		return nil, errUnknown
	}
	return (*lookUp)(e.declared.Name, e.declared.TaskQueue)
}
