// Package workernode puts a worker together: workflows, activities, models and tools, for the
// worker's own process and for the embedded one.
package workernode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/perdure/perdure/activities"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/internal/announce"
	"github.com/perdure/perdure/internal/inbox"
	"github.com/perdure/perdure/internal/presence"
	"github.com/perdure/perdure/internal/webhook"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/workflows"
)

// Config is what a node is made of. Connections belong to the caller.
type Config struct {
	Log      *stream.Log
	Temporal client.Client
	// Namespace is Temporal's; Identity is this process's, and no other's.
	Namespace, Identity string
	Models              map[string]llm.Model
	Tools               *tools.Registry
	// Programs are the agents that are workflows, by their programs' names.
	Programs workflows.Programs
	// Webhooks are told what happens to approvals; nil = there are none.
	Webhooks *webhook.Sender
	// Alone says that no other process works on this log and takes over if this one dies.
	Alone bool
	// WorkflowCache bounds how many workflows are kept in memory. 0 = DefaultWorkflowCache.
	WorkflowCache int
	// Deployment and BuildID version the worker; empty = not versioned. Promote makes the version current
	// if it never was: Start returns when it is.
	Deployment, BuildID string
	Promote             bool
	// StopTimeout is how long activities may take to end when the worker stops; what is cut then is taken
	// up by another worker. 0 = DefaultStopTimeout. A worker that is alone does not wait: who stops it
	// wants it stopped, and starts it again.
	StopTimeout time.Duration
	// ToolGrace is how long a step waits for a worker that has its tools. 0 = activities.DefaultToolGrace.
	ToolGrace time.Duration
	Logger    *slog.Logger
}

// DefaultWorkflowCache is the bound of the workflow cache; beyond it a waiting run costs a replay
// when it goes on, and no memory until then.
const DefaultWorkflowCache = 1000

// maxPollers bounds the polls that are open at the same time on each of a worker's queues.
const maxPollers = 20

// DefaultStopTimeout is how long activities may take to end when the worker stops.
const DefaultStopTimeout = 5 * time.Second

// stopTimeoutAlone is that of a worker that has nobody to wait for.
const stopTimeoutAlone = 200 * time.Millisecond

// Node is a running worker.
type Node struct {
	worker   worker.Worker
	cancels  *stream.Cancels
	tools    *announce.Announcement
	presence *presence.Presence
	restore  *restoration
}

// Start brings a worker up.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	l := cfg.Log
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
	n := &Node{worker: worker.New(cfg.Temporal, workflows.TaskQueue, options(cfg)), cancels: cancels}
	a := &activities.Activities{Log: l, Agents: c, Models: cfg.Models, Tools: cfg.Tools, Cancels: cancels, ToolGrace: cfg.ToolGrace}
	if a.Inbox, err = inbox.Open(ctx, l); err != nil {
		return nil, errors.Join(err, cancels.Stop())
	}
	a.Webhooks, a.StartDelivery = cfg.Webhooks, startDelivery(cfg.Temporal)
	if !cfg.Alone {
		fail := presence.FailAttempts(cfg.Temporal.WorkflowService(), cfg.Namespace)
		if n.presence, err = presence.Start(ctx, l, cfg.Identity, fail, cfg.Logger); err != nil {
			return nil, errors.Join(err, cancels.Stop())
		}
		a.Presence = n.presence
	}
	workflows.Register(n.worker, cfg.Programs)
	a.Register(n.worker)
	if n.tools, err = announce.Start(ctx, l, cmp.Or(cfg.Identity, alone), specs(cfg.Tools)); err != nil {
		return nil, errors.Join(err, n.leave(ctx))
	}
	if err := n.worker.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("worker: %w", err), n.leave(ctx))
	}
	n.restore = restoreInbox(ctx, a.Inbox, cfg.Logger)
	if cfg.Promote && cfg.Deployment != "" {
		version := &deploymentpb.WorkerDeploymentVersion{DeploymentName: cfg.Deployment, BuildId: cfg.BuildID}
		p := &promotion{temporal: cfg.Temporal, namespace: cfg.Namespace, version: version, logger: cfg.Logger}
		if err := p.promote(ctx); err != nil {
			return nil, errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
		}
	}
	return n, nil
}

// alone is the name of a worker that has no identity, since there is no other.
const alone = "alone"

// specs lists all tools.
func specs(r *tools.Registry) []tools.Spec {
	all, _ := r.Select([]string{"*"}) // a pattern, which may match nothing, does not fail
	list := make([]tools.Spec, len(all))
	for i, t := range all {
		list[i] = t.Spec()
	}
	return list
}

func options(cfg Config) worker.Options {
	o := worker.Options{
		// Pollers of the sticky queue and of the normal one are separate then. With a fixed number of
		// mixed ones all of them go to the sticky queue while it is long, and what was moved to the
		// normal queue waits until the load is over.
		WorkflowTaskPollerBehavior:   worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{MaximumNumberOfPollers: maxPollers}),
		StickyScheduleToStartTimeout: 2 * time.Second,
		WorkerStopTimeout:            cmp.Or(cfg.StopTimeout, DefaultStopTimeout),
		DisableRegistrationAliasing:  true,
	}
	if cfg.Alone {
		o.WorkerStopTimeout = stopTimeoutAlone
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
func (n *Node) Stop(ctx context.Context) error {
	if n.presence != nil {
		n.presence.Leave()
	}
	n.worker.Stop()
	return n.leave(ctx)
}

func (n *Node) leave(ctx context.Context) error {
	if n.restore != nil {
		n.restore.stop()
	}
	err := n.cancels.Stop()
	if n.tools != nil {
		err = errors.Join(err, n.tools.Stop(ctx))
	}
	if n.presence != nil {
		err = errors.Join(err, n.presence.Stop(ctx))
	}
	return err
}
