// Package workernode puts a worker together: workflows, activities, models and tools, for the
// worker's own process and for the embedded one.
package workernode

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/perdure/perdure/activities"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/workflows"
)

// Config is what a node is made of. Connections belong to the caller.
type Config struct {
	NATS     *nats.Conn
	Temporal client.Client
	Stream   stream.Options
	Models   map[string]llm.Model
	Tools    *tools.Registry
	// WorkflowCache bounds how many workflows are kept in memory. 0 = DefaultWorkflowCache.
	WorkflowCache int
	// Deployment and BuildID version the worker; empty = not versioned.
	Deployment, BuildID string
	Logger              *slog.Logger
}

// DefaultWorkflowCache is the bound of the workflow cache; beyond it a waiting run costs a replay
// when it goes on, and no memory until then.
const DefaultWorkflowCache = 1000

// stopPatience is how long activities may take to end when the worker stops; what is cut then is
// taken up by another worker.
const stopPatience = 5 * time.Second

// Node is a running worker.
type Node struct {
	worker  worker.Worker
	cancels *stream.Cancels
}

// Start brings a worker up.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	l, err := stream.Open(ctx, cfg.NATS, cfg.Stream)
	if err != nil {
		return nil, err
	}
	c, err := catalog.Open(ctx, l)
	if err != nil {
		return nil, err
	}
	cancels, err := l.ListenCancels()
	if err != nil {
		return nil, err
	}
	if cfg.WorkflowCache == 0 {
		cfg.WorkflowCache = DefaultWorkflowCache
	}
	worker.SetStickyWorkflowCacheSize(cfg.WorkflowCache)
	w := worker.New(cfg.Temporal, workflows.TaskQueue, options(cfg))
	workflows.Register(w)
	(&activities.Activities{Log: l, Agents: c, Models: cfg.Models, Tools: cfg.Tools, Cancels: cancels}).Register(w)
	if err := w.Start(); err != nil {
		_ = cancels.Stop()
		return nil, err
	}
	return &Node{worker: w, cancels: cancels}, nil
}

func options(cfg Config) worker.Options {
	o := worker.Options{
		StickyScheduleToStartTimeout: 2 * time.Second,
		WorkerStopTimeout:            stopPatience,
		DisableRegistrationAliasing:  true,
	}
	if cfg.Deployment != "" {
		o.DeploymentOptions = worker.DeploymentOptions{
			UseVersioning: true,
			Version:       worker.WorkerDeploymentVersion{DeploymentName: cfg.Deployment, BuildID: cfg.BuildID},
		}
	}
	return o
}

// Stop ends the worker and waits for what it does.
func (n *Node) Stop() error {
	n.worker.Stop()
	return n.cancels.Stop()
}
