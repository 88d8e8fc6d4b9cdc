package workernode

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/worker"

	"github.com/perdure/perdure/activities"
	"github.com/perdure/perdure/internal/workers/announce"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/workflows"
)

// Queues are the task queues that a worker serves: the one of all workers, and Tools, on which there are calls
// of tools alone.
type Queues struct {
	Tools []string
	// ToolsOnly leaves the one of all workers to others.
	ToolsOnly bool
}

// Serves tells whether calls of tools on a task queue are this worker's; empty is the one of all workers.
func (q Queues) Serves(queue string) bool {
	if queue == "" || queue == runs.TaskQueue {
		return !q.ToolsOnly
	}
	return slices.Contains(q.Tools, queue)
}

func (q Queues) check() error {
	if q.ToolsOnly && slices.Contains(q.Tools, runs.TaskQueue) {
		return fmt.Errorf("worker: %q is the task queue of all workers, on which there is more than calls of tools", runs.TaskQueue)
	}
	return nil
}

// All lists them.
func (q Queues) All() []string {
	if q.ToolsOnly {
		return q.Tools
	}
	return append([]string{runs.TaskQueue}, q.Tools...)
}

// offers are the tools whose calls this worker makes.
func (q Queues) offers(r *tools.Registry) []announce.Offer {
	var offers []announce.Offer
	own, _ := r.Select([]string{"*"}) // a pattern, which may match nothing, does not fail
	for _, t := range own {
		if s := t.Spec(); q.Serves(s.TaskQueue) {
			offers = append(offers, announce.Offer{Spec: s})
		}
	}
	for _, source := range r.Sources() {
		has, err := source.Offers()
		if err != nil {
			continue // nobody knows them yet
		}
		for _, o := range has {
			// What is on the queue of all workers each of them finds out by itself.
			if s := o.Tool.Spec(); s.TaskQueue != "" && q.Serves(s.TaskQueue) {
				offers = append(offers, announce.Offer{Server: source.Name(), Own: o.Name, Spec: s})
			}
		}
	}
	return offers
}

// newWorkers makes one for each queue. Where there are several, those of tools come first: the version of a worker
// is promoted when the others are there.
func newWorkers(cfg Config, a *activities.Activities) []worker.Worker {
	var all []worker.Worker
	for _, queue := range cfg.Queues.Tools {
		if queue == runs.TaskQueue {
			continue // below
		}
		o := options(cfg)
		o.DisableWorkflowWorker = true
		w := worker.New(cfg.Temporal, queue, o)
		a.RegisterTools(w)
		all = append(all, w)
	}
	if cfg.Queues.ToolsOnly {
		return all
	}
	w := worker.New(cfg.Temporal, runs.TaskQueue, options(cfg))
	workflows.Register(w, cfg.Programs)
	a.Register(w)
	if cfg.Register != nil {
		cfg.Register(w)
	}
	return append(all, w)
}
