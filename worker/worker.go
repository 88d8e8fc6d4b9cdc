// Package worker runs Perdure's worker in your own program, with additional tools in Go, agents
// that are Go programs, and workflows and activities of your own.
//
//	func main() {
//		worker.Main(worker.Additions{
//			Tools:    []tools.Tool{tools.Func("reserve", "Reserves goods.", reserve)},
//			Programs: workflows.Programs{"order": order},
//			Agents:   []*agents.Definition{{Name: "order", Workflow: "order"}},
//		})
//	}
//
// It has the flags and environment variables of the command worker, which is this package without
// additions. Several workers may run concurrently, with the same configuration. "perdure dev
// --no-worker" runs no worker of its own.
package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/internal/approvals/webhook"
	"github.com/perdure/perdure/internal/control/budget"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/events/source"
	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/internal/process/connect"
	"github.com/perdure/perdure/internal/process/memory"
	"github.com/perdure/perdure/internal/process/metricserver"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/internal/process/workernode"
	"github.com/perdure/perdure/internal/transport/egress"
	"github.com/perdure/perdure/internal/workers/assertion"
	"github.com/perdure/perdure/internal/workers/models"
	"github.com/perdure/perdure/internal/workers/presence"
	"github.com/perdure/perdure/internal/workers/toolset"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/workflows"
)

// Additions are what a program adds to the worker. The zero value adds nothing.
type Additions struct {
	// Tools are tools in Go. It is an error if another tool has the same name.
	Tools []tools.Tool
	// Programs are agents that are Go workflow functions, by the names in Definition.Workflow.
	Programs workflows.Programs
	// Agents are definitions that the worker publishes when it starts, like the API does with those
	// of its folder. A different definition that was published over HTTP stays.
	Agents []*agents.Definition
	// Register adds workflows and activities to the worker of the main task queue; nil = none.
	Register func(r worker.Registry)
}

// Main runs the worker as a process until SIGINT or SIGTERM. If the worker fails, Main exits with
// status 1.
func Main(a Additions) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := Run(ctx, a, os.Args[1:], os.Environ(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// Run runs the worker until ctx ends; other workers then continue its runs. args and environ are
// those of the command worker. It writes its log, and nothing else, to out. It blocks. It returns
// nil when ctx has ended, also while the worker still waits for its servers, and after help was
// printed. On Linux it hides the environment and the memory of this process from other processes
// of its user, also after it has returned.
func Run(ctx context.Context, a Additions, args, environ []string, out io.Writer) error {
	if err := memory.Hide(); err != nil {
		return err
	}
	cfg, err := config.Load(config.Worker, args, environ, out)
	if errors.Is(err, config.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	logger := telemetry.NewLogger(cfg.LogHandler(out)).With("process", "worker")
	if len(cfg.Unknown) > 0 {
		logger.WarnContext(ctx, "unknown PERDURE_ variables are ignored", "variables", cfg.Unknown)
	}
	isReady, err := work(ctx, a, cfg, logger)
	if stopped := ctx.Err() != nil && !isReady; stopped && err != nil {
		logger.InfoContext(ctx, "stopped before the worker was ready", "error", err)
		return nil // a stop that was requested is no failure
	}
	return err
}

// work runs a configured worker until ctx ends. isReady reports that it has polled its task queues.
func work(ctx context.Context, a Additions, cfg *config.Config, logger *slog.Logger) (isReady bool, err error) {
	// Mistakes in files are reported before the worker waits for NATS and Temporal.
	folder, err := openFolder(cfg)
	if err != nil {
		return false, err
	}
	signer, err := openSigner(cfg, logger)
	if err != nil {
		return false, err
	}
	queues := workernode.Queues{Tools: cfg.TaskQueues, ToolsOnly: cfg.ToolsOnly}
	set, err := toolset.Open(toolset.Config{
		Folder: folder, Own: a.Tools, Getenv: cfg.Getenv, Serves: queues.Serves, Signer: signer, AllowPrivate: cfg.AllowPrivateHosts, Logger: logger,
	})
	if err != nil {
		return false, err
	}
	defer set.Close() // after the node, whose calls use it

	hooks, err := webhook.Open(cfg.Webhooks, cfg.Getenv, egress.PolicyFor(cfg.AllowPrivateHosts))
	if err != nil {
		return false, err
	}
	defer hooks.Close()
	hooks.ConsoleURL = cfg.ConsoleURL()
	sources, err := source.Open(cfg.EventSources, nil)
	if err != nil {
		return false, &config.VariableError{Name: config.EventSourcesName, Err: err}
	}
	prices, err := budget.LoadIf(cfg.Prices)
	if err != nil {
		return false, err
	}

	policies, err := cfg.Policies.Load()
	if err != nil {
		return false, err
	}
	principals, err := cfg.OpenPrincipals(logger)
	if err != nil {
		return false, err
	}
	defer principals.Close()

	quotas, err := quota.Open(cfg.Quotas, false, logger)
	if err != nil {
		return false, &config.VariableError{Name: "PERDURE_QUOTAS_FILE", Err: err}
	}
	defer quotas.Close()

	tel, err := telemetry.Start(ctx, "perdure-worker", cfg.Getenv)
	if err != nil {
		return false, err
	}
	defer tel.Shutdown(context.WithoutCancel(ctx), logger)
	// All processes use this converter, which refuses payloads that are too large for a history.
	cfg.Temporal.DataConverter = runs.DataConverter()
	cfg.Temporal.Identity = identity()
	tasks := presence.NewTasks()
	cfg.Temporal.ConnectionOptions.DialOptions = append(cfg.Temporal.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(tasks.Intercept))
	tel.Instrument(&cfg.Temporal)
	metrics, err := metricserver.Start(ctx, cfg.MetricsAddr, tel.Metrics(), logger)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, metrics.Stop()) }()
	connections, err := connect.Dial(ctx, cfg, "perdure-worker", logger)
	if err != nil {
		return false, err
	}
	defer connections.Close()
	log, stored, err := connections.OpenStores(ctx, cfg)
	if err != nil {
		return false, err
	}
	// The agents are published before the worker polls its task queues.
	if err := publish(ctx, log, a.Agents, logger); err != nil {
		return false, err
	}
	options := models.Options{Getenv: cfg.Getenv, Silence: cfg.ModelSilence, Scripts: folder.Scripts, Secrets: cfg.Secrets}
	node, err := workernode.Start(ctx, workernode.Config{
		Snapshots:     snapshot.NewStore(log),
		Temporal:      connections.Temporal,
		Namespace:     connections.Namespace,
		Identity:      cfg.Temporal.Identity,
		Tasks:         tasks,
		Models:        models.FromEnv(options),
		ModelNames:    options.Names,
		Tools:         set.Registry(),
		Secret:        toolset.Secrets(cfg.Getenv),
		AllowPrivate:  cfg.AllowPrivateHosts,
		RemoteSilence: cfg.ModelSilence,
		ModelLimits:   cfg.ModelLimits,
		Signer:        signer,
		Programs:      a.Programs,
		Register:      a.Register,
		Queues:        queues,
		LookElsewhere: set.LookElsewhere,
		Webhooks:      hooks, Files: stored,
		Policies:      policies,
		Principals:    principals,
		Sources:       sources,
		Quotas:        quotas,
		Budgets:       workernode.Budgets{Prices: prices, TenantBudget: tenantBudget(cfg)},
		WorkflowCache: cfg.WorkflowCache,
		Version:       workernode.Version{Deployment: cfg.Deployment, BuildID: cfg.BuildID, Promote: cfg.Promote},
		StopTimeout:   cfg.StopTimeout,
		ToolGrace:     cfg.ToolGrace,
		Logger:        logger,
	})
	if err != nil {
		return false, err
	}
	// From here on the Temporal workers poll in goroutines of their own; Run only waits.
	metrics.SetReady(nil)
	logger.InfoContext(ctx, "working", "queues", queues.All(), "metrics", metrics.Addr())
	<-ctx.Done()
	logger.InfoContext(ctx, "stopping")
	node.Stop(context.WithoutCancel(ctx))
	return true, nil
}

// openSigner returns the signer of assertions; nil = the configuration has no keys.
func openSigner(cfg *config.Config, logger *slog.Logger) (*assertion.Signer, error) {
	if cfg.AssertionKeys() == "" {
		return nil, nil
	}
	return assertion.Open(cfg.PublicURL, cfg.AssertionKeys, logger)
}

// tenantBudget returns the budget of each tenant for a day.
func tenantBudget(cfg *config.Config) budget.Day {
	return budget.Day{
		Amounts: budget.AmountsOf(cfg.TenantTokensPerDay, cfg.TenantCostPerDay),
		Soft:    budget.AmountsOf(cfg.TenantSoftTokensPerDay, cfg.TenantSoftCostPerDay),
	}
}

// publish publishes the agents of the program. A definition from HTTP that has precedence is only
// logged.
func publish(ctx context.Context, log *stream.Log, all []*agents.Definition, logger *slog.Logger) error {
	if len(all) == 0 {
		return nil
	}
	c, err := catalog.Open(ctx, log)
	if err != nil {
		return err
	}
	for _, d := range all {
		if err := d.Validate(); err != nil {
			return fmt.Errorf("worker: agent %s: %w", d.Name, err)
		}
		_, err := c.Publish(ctx, d, false)
		if errors.Is(err, catalog.ErrKept) {
			logger.WarnContext(ctx, "an agent of this worker is not published, because another definition was published over HTTP", "agent", d.Name)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openFolder reads tools, MCP servers and scripts of the folder of definitions; without a folder
// the result is empty.
func openFolder(cfg *config.Config) (*agents.Folder, error) {
	if cfg.Agents == "" {
		return &agents.Folder{}, nil
	}
	return agents.LoadDir(cfg.Agents)
}

// identity returns the name of this process in Temporal and in package presence. No other process
// gets the same name, not even a later one with the same host and PID: other workers fail the
// activities of a dead worker by its name. It has at most 64 letters, digits and dashes, because it
// is part of a key.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	host = notInKeys.ReplaceAllString(host, "-")
	return fmt.Sprintf("%s-%d-%s", host[:min(len(host), 24)], os.Getpid(), rand.Text())
}

var notInKeys = regexp.MustCompile(`[^A-Za-z0-9]`)
