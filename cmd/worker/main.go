// Command worker runs Perdure's workflows and activities: it calls models and tools. Start as many
// as you like, on the same NATS and Temporal. "worker --help" lists its flags and environment
// variables.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/budget"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/connect"
	"github.com/perdure/perdure/internal/models"
	"github.com/perdure/perdure/internal/telemetry"
	"github.com/perdure/perdure/internal/toolset"
	"github.com/perdure/perdure/internal/webhook"
	"github.com/perdure/perdure/internal/workernode"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/workflows"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := run(ctx, os.Args[1:], os.Environ(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// run works until ctx ends, then lets go of what it does: another worker takes it up. It logs to
// out, and nowhere else.
func run(ctx context.Context, args, environ []string, out io.Writer) (err error) {
	cfg, err := config.Load(config.Worker, args, environ, out)
	if errors.Is(err, config.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	logger := telemetry.NewLogger(cfg.LogHandler(out)).With("process", "worker")
	if len(cfg.Unknown) > 0 {
		logger.WarnContext(ctx, "these variables mean nothing", "variables", cfg.Unknown)
	}
	folder, err := openFolder(cfg)
	if err != nil {
		return err
	}
	queues := workernode.Queues{Tools: cfg.TaskQueues, ToolsOnly: cfg.ToolsOnly}
	set, err := toolset.Open(toolset.Config{
		Folder: folder, Getenv: cfg.Getenv, Serves: queues.Serves, AllowPrivate: cfg.AllowPrivateHosts, Logger: logger,
	})
	if err != nil {
		return err
	}
	defer set.Close() // behind the node, whose calls are made with it

	hooks, err := webhook.Open(cfg.Webhooks, cfg.Getenv, cfg.AllowPrivateHosts)
	if err != nil {
		return err
	}
	defer hooks.Close()

	prices, err := budget.LoadIf(cfg.Prices)
	if err != nil {
		return err
	}

	tel, err := telemetry.Start(ctx, "perdure-worker", cfg.Getenv)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tel.Shutdown(context.WithoutCancel(ctx))) }()
	cfg.Temporal.DataConverter = workflows.DataConverter()
	cfg.Temporal.Identity = identity()
	if err := tel.Instrument(&cfg.Temporal); err != nil {
		return err
	}
	connections, err := connect.Dial(ctx, cfg, "perdure-worker", logger)
	if err != nil {
		return err
	}
	defer connections.Close()
	metrics, err := serveMetrics(ctx, cfg.MetricsAddr, tel.Metrics(), logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, metrics.stop()) }()
	log, err := stream.Open(ctx, connections.NATS, cfg.Stream)
	if err != nil {
		return err
	}
	node, err := workernode.Start(ctx, workernode.Config{
		Log:           log,
		Temporal:      connections.Temporal,
		Namespace:     connections.Namespace,
		Identity:      cfg.Temporal.Identity,
		Models:        models.FromEnv(cfg.Getenv, cfg.ModelSilence, folder.Scripts),
		Tools:         set.Registry(),
		Queues:        queues,
		LookElsewhere: set.LookElsewhere,
		Webhooks:      hooks,
		Prices:        prices,
		TenantBudget:  budget.DayOf(cfg.TenantTokensPerDay, cfg.TenantCostPerDay),
		WorkflowCache: cfg.WorkflowCache,
		Deployment:    cfg.Deployment,
		BuildID:       cfg.BuildID,
		Promote:       cfg.Promote,
		StopTimeout:   cfg.StopTimeout,
		ToolGrace:     cfg.ToolGrace,
		Logger:        logger,
	})
	if err != nil {
		return err
	}
	logger.InfoContext(ctx, "working", "queues", queues.All(), "metrics", metrics.addr())
	<-ctx.Done()
	logger.InfoContext(ctx, "stopping")
	return node.Stop(context.WithoutCancel(ctx))
}

// openFolder reads the tools, servers and scripts of the folder of definitions, if there is one.
func openFolder(cfg *config.Config) (*agents.Folder, error) {
	if cfg.Agents == "" {
		return &agents.Folder{}, nil
	}
	return agents.LoadDir(cfg.Agents)
}

// identity is this process's, and never another's: other workers act on what is known by it, so that
// not even the next process of this host and number may have it. It has at most 64 letters, digits and
// dashes, because it is part of a key in a NATS bucket as well.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	host = notInKeys.ReplaceAllString(host, "-")
	return fmt.Sprintf("%s-%d-%s", host[:min(len(host), 24)], os.Getpid(), rand.Text())
}

var notInKeys = regexp.MustCompile(`[^A-Za-z0-9]`)
