package workernode

import (
	"fmt"
	"slices"

	"github.com/perdure/perdure/internal/workers/announce"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/tools"
)

// Queues are the task queues that a worker serves: the main one, with workflows and most
// activities, and Tools, which have tool calls only.
type Queues struct {
	Tools []string
	// ToolsOnly means that the worker does not serve the main queue.
	ToolsOnly bool
}

// Serves reports whether this worker executes the tool calls of a task queue; "" is the main one.
func (q Queues) Serves(queue string) bool {
	if queue == "" || queue == runs.TaskQueue {
		return !q.ToolsOnly
	}
	return slices.Contains(q.Tools, queue)
}

// check refuses a ToolsOnly worker that lists the main queue: it would receive workflows.
func (q Queues) check() error {
	if q.ToolsOnly && slices.Contains(q.Tools, runs.TaskQueue) {
		return fmt.Errorf("worker: a worker that makes only tool calls must not serve %q, the main task queue", runs.TaskQueue)
	}
	return nil
}

// All returns the names of all task queues that the worker serves.
func (q Queues) All() []string {
	if q.ToolsOnly {
		return q.Tools
	}
	return append([]string{runs.TaskQueue}, q.Tools...)
}

// offers returns the tools whose calls this worker executes, for its announcement.
func (q Queues) offers(r *tools.Registry) []announce.Offer {
	var offers []announce.Offer
	all, _ := r.Select([]string{"*"}) // a pattern that matches nothing is no error
	for _, t := range all {
		if s := t.Spec(); q.Serves(s.TaskQueue) {
			offers = append(offers, announce.Offer{Spec: s})
		}
	}
	for _, source := range r.Sources() {
		served, err := source.Offers()
		if err != nil {
			continue // the server is not connected yet
		}
		for _, o := range served {
			// Tools of MCP servers on the main queue need no announcement: every worker has their
			// declaration, and is connected to the server.
			if s := o.Tool.Spec(); s.TaskQueue != "" && q.Serves(s.TaskQueue) {
				offers = append(offers, announce.Offer{Server: source.Name(), Own: o.Name, Spec: s})
			}
		}
	}
	return offers
}
