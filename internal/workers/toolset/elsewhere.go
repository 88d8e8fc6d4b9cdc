package toolset

import (
	"errors"
	"sync/atomic"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/tools"
)

// Lookup finds out which tools workers of a task queue have of an MCP server.
type Lookup func(server, queue string) ([]tools.Offer, error)

// elsewhere is an MCP server that other workers have. What it offers is what they announce.
type elsewhere struct {
	declared *agents.Server
	lookUp   atomic.Pointer[Lookup]
}

var errUnknown = errors.New("nobody can be asked for its tools yet")

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
