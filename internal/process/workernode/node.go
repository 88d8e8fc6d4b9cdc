package workernode

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/activities"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui/remote"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/approvals/webhook"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/auth/principals"
	"github.com/perdure/perdure/internal/control/admission"
	"github.com/perdure/perdure/internal/control/budget"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/internal/control/usage"
	"github.com/perdure/perdure/internal/events/source"
	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/internal/process/version"
	"github.com/perdure/perdure/internal/secrets"
	"github.com/perdure/perdure/internal/transport/egress"
	"github.com/perdure/perdure/internal/workers/announce"
	"github.com/perdure/perdure/internal/workers/assertion"
	"github.com/perdure/perdure/internal/workers/presence"
	"github.com/perdure/perdure/internal/workers/toolset"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/workflows"
)

// Config configures a node. The caller owns and closes its connections.
type Config struct {
	Snapshots *snapshot.Store // of the node's log
	Temporal  client.Client
	// Namespace is the Temporal namespace of the client. Identity is the worker's name in Temporal
	// and in package presence: it must be unique to this process.
	Namespace, Identity string
	// Tasks has the tasks of this process, from the connection of Temporal. It is required unless the
	// node is Alone.
	Tasks  *presence.Tasks
	Models map[string]llm.Model
	// ModelLimits bounds the calls of Models, of all workers together; nil = there are no limits.
	ModelLimits admission.Limits
	// ModelNames returns the configured providers of Models and their scripts, for the announcement.
	// It is called concurrently. nil = there are none.
	ModelNames func() agents.Names
	Tools      *tools.Registry
	// Secret looks up the secrets of remote agents. AllowPrivate allows these to have addresses that
	// are not on the public internet. RemoteSilence is how long one may send nothing; 0 = the default
	// of remote.Limits.
	Secret        secrets.Lookup
	AllowPrivate  bool
	RemoteSilence time.Duration
	// Queues are the task queues that this worker serves.
	Queues Queues
	// Signer signs the assertions of Tools, for the announcement of its public keys; nil = they have
	// none.
	Signer *assertion.Signer
	// LookElsewhere is called once by Start with the lookup of the MCP tools that other workers
	// have announced; nil = the tools need no lookup.
	LookElsewhere func(offers toolset.Lookup)
	// Programs are the agents that are Go workflow functions, by name.
	Programs workflows.Programs
	// Register adds workflows and activities to the worker of the main task queue; nil = none.
	Register func(r worker.Registry)
	// Policies decides what the requesters of schedules may do.
	Policies *policy.Engine
	// Principals has the services as which schedules run. nil = there are none.
	Principals *principals.Principals
	// Sources has the sources of events in NATS. nil = there are none.
	Sources *source.Set
	// Quotas are the quotas of tenants for runs of schedules, and the rates of their sources of events in
	// NATS. nil = the defaults.
	Quotas *quota.Table
	// Files stores the files of tenants. nil = there are none.
	Files *files.Store
	// Webhooks sends the events of interrupts; nil = there are no webhooks. The caller closes it.
	Webhooks *webhook.Sender
	Budgets
	// Alone means that no other process works on this log. Then presence is off: nobody would take
	// over.
	Alone bool
	// WorkflowCache bounds the workflows in memory. 0 = DefaultWorkflowCache. The bound is that of
	// the process: Temporal's SDK has one cache for all workers.
	WorkflowCache int
	Version
	// StopTimeout is how long activities may take after Stop; another worker repeats those that are
	// cut. 0 = DefaultStopTimeout. A worker that is Alone uses aloneStopTimeout instead: its user
	// waits for the end of the process, and starts it again.
	StopTimeout time.Duration
	// ToolGrace is how long a step waits for a worker that has its tools. 0 =
	// activities.DefaultToolGrace.
	ToolGrace time.Duration
	Logger    *slog.Logger
}

// Budgets are what tenants may spend on a day. Prices are the prices of models and the budgets of
// single tenants; nil = none. TenantBudget is the budget of all other tenants.
type Budgets struct {
	Prices       *budget.File
	TenantBudget budget.Day
}

// Version is the worker's version in Temporal; empty = not versioned. With Promote, Start makes the
// version current if it never was, and returns when that is done.
type Version struct {
	Deployment, BuildID string
	Promote             bool
}

// DefaultWorkflowCache is the default of Config.WorkflowCache. A waiting run beyond the cache uses
// no memory, and is replayed when it continues.
const DefaultWorkflowCache = 1000

// maxPollers bounds the concurrent polls of each task queue.
const maxPollers = 20

// DefaultStopTimeout is the default of Config.StopTimeout.
const DefaultStopTimeout = 3 * time.Second

const (
	// stopMargin is added to the stop timeout for the whole worker. The SDK gives the stop timeout
	// to each of its pools, one after the other, and waits up to 10 s for a Temporal that is
	// unavailable.
	stopMargin = 500 * time.Millisecond
	// leaveTimeout bounds the waits for Temporal and the log after that.
	leaveTimeout = time.Second
)

// aloneStopTimeout is the stop timeout of a worker that is Alone.
const aloneStopTimeout = 200 * time.Millisecond

// Node is a running worker. Start makes it; Stop ends it and everything that it has started. The
// connections belong to the caller.
type Node struct {
	workers  []worker.Worker // one for each task queue
	local    *activities.LocalSteps
	commands *stream.Commands
	board    *announce.Board
	tools    *announce.Announcement
	presence *presence.Presence
	models   *admission.Gate // nil = the node calls no models
	restore  *restoration
	routing  *routing // nil = this worker routes no events
	audit    *store.Writer
	threads  *threads.Counter // nil = the node executes no workflows
	// stopTimeout is how long activities may take after Stop.
	stopTimeout time.Duration
	logger      *slog.Logger
}

// Start starts a worker, and returns when it polls its task queues. If it fails, nothing keeps
// running. The caller must call Stop.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	l := cfg.Snapshots.Log()
	if err := cfg.Queues.check(); err != nil {
		return nil, err
	}
	c, err := catalog.Open(ctx, l)
	if err != nil {
		return nil, err
	}
	commands, err := l.ListenCommands()
	if err != nil {
		return nil, err
	}
	if cfg.WorkflowCache == 0 {
		cfg.WorkflowCache = DefaultWorkflowCache
	}
	worker.SetStickyWorkflowCacheSize(cfg.WorkflowCache)
	worker.SetBinaryChecksum(version.BinaryID())
	n := &Node{local: activities.NewLocalSteps(cfg.processQueue()), commands: commands, stopTimeout: cfg.stopTimeout(), logger: cfg.Logger}
	if n.board, err = announce.Watch(ctx, l); err != nil {
		return nil, errors.Join(err, n.stopBackground(ctx))
	}
	if cfg.LookElsewhere != nil {
		cfg.LookElsewhere(n.board.Offers)
	}
	a := &activities.Activities{Log: l, Snapshots: cfg.Snapshots, Agents: c, Models: cfg.Models, Tools: cfg.Tools, Commands: commands, Local: n.local, ToolGrace: cfg.ToolGrace, Queues: n.board, Remotes: cfg.remoteAgents()}
	a.Policies, a.Principals = cfg.Policies, cfg.Principals
	if cfg.Files != nil {
		a.Files = activities.NewFileStore(cfg.Files)
	}
	if a.Inbox, err = inbox.Open(ctx, l); err != nil {
		return nil, errors.Join(err, n.stopBackground(ctx))
	}
	if a.Schedules, err = schedules.Open(ctx, l); err != nil {
		return nil, errors.Join(err, n.stopBackground(ctx))
	}
	if n.audit, err = openAudit(ctx, l); err != nil {
		return nil, errors.Join(err, n.stopBackground(ctx))
	}
	a.Audit = n.audit
	if !cfg.Queues.ToolsOnly {
		if n.threads, err = threads.Count(ctx, l); err != nil {
			return nil, errors.Join(err, n.stopBackground(ctx))
		}
		a.Quotas = newMeter(cfg.Quotas, n.threads)
	}
	a.Dispatch = &dispatch.Dispatcher{Log: l, Temporal: cfg.Temporal}
	a.Prices = cfg.Prices
	if !cfg.Queues.ToolsOnly {
		if n.routing, err = startRouting(ctx, a.Dispatch, cfg.Snapshots, c, receiver(cfg.Sources, quota.NewRates(cfg.Quotas), n.audit), cfg.Logger); err != nil {
			return nil, errors.Join(err, n.stopBackground(ctx))
		}
		a.Events = n.routing.router
		if n.models, err = admission.Open(ctx, l, rand.Text(), cfg.ModelLimits); err != nil {
			return nil, errors.Join(err, n.stopBackground(ctx))
		}
		a.Admission = n.models
		if a.Usage, err = usage.Open(ctx, l); err != nil {
			return nil, errors.Join(err, n.stopBackground(ctx))
		}
	}
	if a.Budget, err = budget.Open(ctx, l, cfg.TenantBudget, cfg.Prices); err != nil {
		return nil, errors.Join(err, n.stopBackground(ctx))
	}
	a.Webhooks, a.StartDelivery = cfg.Webhooks, startDelivery(cfg.Temporal)
	if !cfg.Alone {
		service := cfg.Temporal.WorkflowService()
		temporal := presence.Temporal{
			Shutdown: presence.ShutdownWorkers(service, cfg.Namespace), Fail: presence.FailTasks(service, cfg.Namespace),
			Sweep: presence.SweepAttempts(service, cfg.Namespace, runs.TypeRun, runs.TypeChild, runs.TypeFiring, runs.TypeTitle, runs.TypeTrigger),
		}
		if n.presence, err = presence.Start(ctx, l, cfg.Identity, cfg.Tasks, temporal, cfg.Logger); err != nil {
			return nil, errors.Join(err, n.stopBackground(ctx))
		}
		a.Presence = n.presence
	}
	contents := announce.Contents{
		Offers: func() []announce.Offer { return cfg.Queues.offers(cfg.Tools) }, Names: cfg.names, Circuits: circuits(n.models), Signer: cfg.Signer,
	}
	if n.tools, err = announce.Start(ctx, l, cfg.description(), contents); err != nil {
		return nil, errors.Join(err, n.stopBackground(ctx))
	}
	commands.Answer(n.local.Find)
	for _, w := range newWorkers(cfg, a) {
		if err := w.Start(); err != nil {
			return nil, fmt.Errorf("worker: %w", n.stopAfter(ctx, err))
		}
		n.workers = append(n.workers, w)
	}
	if !cfg.Queues.ToolsOnly {
		n.restore = restore(ctx, cfg.Logger, l.RestoreIndex, a.Inbox.Restore)
	}
	if cfg.Promote && cfg.Deployment != "" {
		v := &deploymentpb.WorkerDeploymentVersion{DeploymentName: cfg.Deployment, BuildId: cfg.BuildID}
		p := &promotion{temporal: cfg.Temporal, namespace: cfg.Namespace, version: v, logger: cfg.Logger}
		if err := p.promote(ctx); err != nil {
			return nil, n.stopAfter(ctx, err)
		}
	}
	return n, nil
}

// remoteAgents returns what calls remote agents. Each request has a new connection: one that was idle may
// break with the request, and whether the remote has begun the run would be unknown.
func (cfg *Config) remoteAgents() activities.RemoteAgents {
	transport := egress.Transport(egress.PolicyFor(cfg.AllowPrivate))
	transport.DisableKeepAlives = true
	return activities.RemoteAgents{Client: remote.NewClient(egress.Traced(transport)), Secret: cfg.Secret, Silence: cfg.RemoteSilence}
}

// newMeter returns the meter of the quotas for runs of schedules.
func newMeter(table *quota.Table, counter *threads.Counter) *quota.Meter {
	return &quota.Meter{Table: table, Counts: map[quota.Name]quota.Count{
		quota.Runs: func(_ context.Context, tenant string) (int64, error) {
			active, _ := counter.Counts(tenant)
			return int64(active), nil
		},
		quota.Waiting: func(_ context.Context, tenant string) (int64, error) {
			_, waiting := counter.Counts(tenant)
			return int64(waiting), nil
		},
	}}
}

// openAudit opens the audit log, to which a worker only appends. The caller must close the writer.
func openAudit(ctx context.Context, l *stream.Log) (*store.Writer, error) {
	log, err := store.Open(ctx, l)
	if err != nil {
		return nil, err
	}
	return store.NewWriter(log)
}

// options returns the options of each Temporal worker of the node.
func options(cfg Config) worker.Options {
	o := worker.Options{
		// Autoscaling separates the pollers of the sticky queue from those of the normal one. With
		// a fixed number of mixed pollers, all go to the sticky queue while it is long, and tasks
		// of the normal queue wait until the load is over.
		WorkflowTaskPollerBehavior:   worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{MaximumNumberOfPollers: maxPollers}),
		StickyScheduleToStartTimeout: 2 * time.Second,
		WorkerStopTimeout:            cfg.stopTimeout(),
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

// stopTimeout returns how long activities may take after Stop.
func (cfg *Config) stopTimeout() time.Duration {
	if cfg.Alone {
		return aloneStopTimeout
	}
	return cmp.Or(cfg.StopTimeout, DefaultStopTimeout)
}

// stopAfter stops a node whose start has failed, and returns err.
func (n *Node) stopAfter(ctx context.Context, err error) error {
	n.Stop(context.WithoutCancel(ctx))
	return err
}

// leaveTasksTimeout bounds how long steps may take to leave their workflow tasks before the worker
// stops. Usually they take milliseconds. A busy Temporal may need more than half a second, and a step
// that has not left by then is made again by another worker.
const leaveTasksTimeout = 2 * time.Second

// Stop ends the worker: it polls no more tasks, and lets activities end within the stop timeout.
// Other workers continue the rest. A failure because Temporal or the log is unavailable is logged;
// other workers then take this worker for dead. Stop returns within the stop timeout and some
// seconds.
func (n *Node) Stop(ctx context.Context) {
	if n.presence != nil {
		n.presence.Leave()
	}
	leaving, leave := context.WithTimeout(ctx, min(leaveTasksTimeout, n.stopTimeout))
	n.local.Leave(leaving)
	leave()
	if !n.stopWorkers() {
		n.logger.WarnContext(ctx, "Temporal did not answer, or calls did not end before the timeout: other workers repeat the calls")
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	if err := n.stopBackground(ctx); err != nil {
		n.logger.WarnContext(ctx, "the worker could not remove its announcements: other workers treat it as dead, and repeat its calls", "error", err)
	}
}

// stopWorkers stops the Temporal workers concurrently, and then the steps that no activity
// awaits. It reports whether they stopped in time. Otherwise their goroutines end later.
func (n *Node) stopWorkers() bool {
	var wait sync.WaitGroup
	for _, w := range n.workers {
		wait.Go(w.Stop)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		wait.Wait()
		n.local.Stop()
	}()
	timeout := time.NewTimer(n.stopTimeout + stopMargin)
	defer timeout.Stop()
	select {
	case <-stopped:
		return true
	case <-timeout.C:
		return false
	}
}

// stopBackground deletes the node's announcements and stops its watches, concurrently. It accepts a
// node that was started only partly.
func (n *Node) stopBackground(ctx context.Context) error {
	var g errgroup.Group
	if n.restore != nil {
		g.Go(func() error { n.restore.stop(); return nil })
	}
	g.Go(func() error {
		n.routing.stop() // its last messages are recorded
		if n.audit != nil {
			n.audit.Close()
		}
		return nil
	})
	g.Go(n.commands.Stop)
	if n.models != nil {
		g.Go(func() error { n.models.Stop(); return nil })
	}
	if n.threads != nil {
		g.Go(func() error { n.threads.Stop(); return nil })
	}
	if n.board != nil {
		g.Go(func() error { n.board.Stop(); return nil })
	}
	var announced, present error
	if n.tools != nil {
		g.Go(func() error { announced = n.tools.Stop(ctx); return nil })
	}
	if n.presence != nil {
		g.Go(func() error { present = n.presence.Stop(ctx); return nil })
	}
	return errors.Join(g.Wait(), announced, present)
}

// processQueue returns the task queue that only this process serves. The processes of a data
// directory, of which one runs at a time, have one queue, so that the next one gets what is left.
func (cfg *Config) processQueue() string {
	return runs.ProcessQueuePrefix + cmp.Or(cfg.Identity, aloneName)
}

// newProcessWorker returns the worker of the process's own task queue: its activities await the steps
// that have left their workflow tasks. It has no version, because no other process has its
// queue.
func newProcessWorker(cfg Config, a *activities.Activities) worker.Worker {
	o := options(cfg)
	o.DisableWorkflowWorker, o.DeploymentOptions = true, worker.DeploymentOptions{}
	o.ActivityTaskPollerBehavior = worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{InitialNumberOfPollers: 1, MaximumNumberOfPollers: maxPollers})
	w := worker.New(cfg.Temporal, cfg.processQueue(), o)
	a.RegisterSteps(w)
	return w
}

// newWorkers returns a Temporal worker for each task queue, the main queue last: Start starts them
// in this order, and the tools' queues must be polled when the version is promoted.
func newWorkers(cfg Config, a *activities.Activities) []worker.Worker {
	var all []worker.Worker
	for _, queue := range cfg.Queues.Tools {
		if queue == runs.TaskQueue {
			continue // added below, after the queues of tools
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
	all = append(all, newProcessWorker(cfg, a))
	w := worker.New(cfg.Temporal, runs.TaskQueue, options(cfg))
	workflows.Register(w, cfg.Programs)
	a.Register(w)
	if cfg.Register != nil {
		cfg.Register(w)
	}
	return append(all, w)
}
