// Package workernode puts a worker together: workflows, activities, models and tools, for the
// worker's own process and for the embedded one.
package workernode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/perdure/perdure/activities"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/internal/announce"
	"github.com/perdure/perdure/internal/budget"
	"github.com/perdure/perdure/internal/dispatch"
	"github.com/perdure/perdure/internal/inbox"
	"github.com/perdure/perdure/internal/presence"
	"github.com/perdure/perdure/internal/schedules"
	"github.com/perdure/perdure/internal/toolset"
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
	// Queues says which calls of tools this worker makes.
	Queues Queues
	// LookElsewhere is given the way to find out what other workers have of MCP servers. nil = nobody asks.
	LookElsewhere func(offers toolset.Lookup)
	// Programs are the agents that are workflows, by their programs' names.
	Programs workflows.Programs
	// Register adds workflows and activities to the worker of the main task queue; nil = none.
	Register func(r worker.Registry)
	// Webhooks are told what happens to approvals; nil = there are none.
	Webhooks *webhook.Sender
	// Prices are those of models, with the budgets of tenants; nil = there are none. TenantBudget is that of the others.
	Prices       *budget.File
	TenantBudget budget.Day
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
	workers  []worker.Worker // each on a task queue
	cancels  *stream.Cancels
	board    *announce.Board
	tools    *announce.Announcement
	presence *presence.Presence
	restore  *restoration
}

// Start brings a worker up.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	l := cfg.Log
	if err := cfg.Queues.check(); err != nil {
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
	n := &Node{cancels: cancels}
	if n.board, err = announce.Watch(ctx, l); err != nil {
		return nil, errors.Join(err, n.leave(ctx))
	}
	if cfg.LookElsewhere != nil {
		cfg.LookElsewhere(n.board.Offers)
	}
	a := &activities.Activities{Log: l, Agents: c, Models: cfg.Models, Tools: cfg.Tools, Cancels: cancels, ToolGrace: cfg.ToolGrace, Queues: n.board}
	if a.Inbox, err = inbox.Open(ctx, l); err != nil {
		return nil, errors.Join(err, n.leave(ctx))
	}
	if a.Schedules, err = schedules.Open(ctx, l); err != nil {
		return nil, errors.Join(err, n.leave(ctx))
	}
	a.Dispatch = &dispatch.Dispatcher{Log: l, Temporal: cfg.Temporal}
	a.Prices = cfg.Prices
	if a.Budget, err = budget.Open(ctx, l, cfg.TenantBudget, cfg.Prices); err != nil {
		return nil, errors.Join(err, n.leave(ctx))
	}
	a.Webhooks, a.StartDelivery = cfg.Webhooks, startDelivery(cfg.Temporal)
	if !cfg.Alone {
		fail := presence.FailAttempts(cfg.Temporal.WorkflowService(), cfg.Namespace)
		sweep := presence.FailUnnoted(cfg.Temporal.WorkflowService(), cfg.Namespace, workflows.TypeRun, workflows.TypeBranch, workflows.TypeFire)
		if n.presence, err = presence.Start(ctx, l, cfg.Identity, fail, sweep, cfg.Logger); err != nil {
			return nil, errors.Join(err, n.leave(ctx))
		}
		a.Presence = n.presence
	}
	offers := func() []announce.Offer { return cfg.Queues.offers(cfg.Tools) }
	if n.tools, err = announce.Start(ctx, l, cmp.Or(cfg.Identity, alone), offers); err != nil {
		return nil, errors.Join(err, n.leave(ctx))
	}
	for _, w := range newWorkers(cfg, a) {
		if err := w.Start(); err != nil {
			return nil, errors.Join(fmt.Errorf("worker: %w", err), n.Stop(context.WithoutCancel(ctx)))
		}
		n.workers = append(n.workers, w)
	}
	if !cfg.Queues.ToolsOnly {
		n.restore = restore(ctx, cfg.Logger, l.RestoreIndex, a.Inbox.Restore)
	}
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
	var wait sync.WaitGroup
	for _, w := range n.workers {
		wait.Go(w.Stop)
	}
	wait.Wait()
	return n.leave(ctx)
}

func (n *Node) leave(ctx context.Context) error {
	if n.restore != nil {
		n.restore.stop()
	}
	err := n.cancels.Stop()
	if n.board != nil {
		n.board.Stop()
	}
	if n.tools != nil {
		err = errors.Join(err, n.tools.Stop(ctx))
	}
	if n.presence != nil {
		err = errors.Join(err, n.presence.Stop(ctx))
	}
	return err
}
