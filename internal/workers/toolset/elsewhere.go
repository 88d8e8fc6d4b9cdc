package toolset

import (
	"errors"
	"slices"
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

// LookElsewhere has the tools of servers that this worker does not serve looked up; until then they are
// unknown.
func (s *Set) LookElsewhere(lookUp Lookup) {
	for _, e := range s.elsewhere {
		e.lookUp.Store(&lookUp)
	}
}

// TaskQueues lists those, besides the one of all workers, that tools are declared to be on.
func (s *Set) TaskQueues() []string {
	var queues []string
	own, _ := s.registry.Select([]string{"*"}) // a pattern, which may match nothing, does not fail
	for _, t := range own {
		queues = append(queues, t.Spec().TaskQueue)
	}
	queues = append(queues, s.declared...)
	slices.Sort(queues)
	return slices.DeleteFunc(slices.Compact(queues), func(q string) bool { return q == "" })
}
