// Command api serves Perdure's HTTP API. It is stateless: start any number of nodes on the same
// NATS and Temporal. "api --help" lists its flags and environment variables, and "api probe" checks
// whether a node on this machine is ready.
package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/api/agentroutes"
	"github.com/perdure/perdure/api/systemroutes"
	"github.com/perdure/perdure/internal/auth/callers"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/control/retention"
	"github.com/perdure/perdure/internal/events/source"
	"github.com/perdure/perdure/internal/process/apinode"
	"github.com/perdure/perdure/internal/process/certificates"
	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/internal/process/connect"
	"github.com/perdure/perdure/internal/process/memory"
	"github.com/perdure/perdure/internal/process/metricserver"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream/snapshot"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := run(ctx, os.Args[1:], os.Environ(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

// searchAttributes are the search attributes that the API creates if the namespace lacks them. Runs
// set PerdureTenant, PerdureAgent and PerdureRun, for Temporal's UI; a start with an unknown search
// attribute fails.
var searchAttributes = []string{runs.AttributeTenant.GetName(), runs.AttributeAgent.GetName(), runs.AttributeRun.GetName()}

// run serves the API until ctx ends, and then lets open requests end. If ctx ends before the API
// serves, run returns nil soon. It writes its log, and nothing else, to out. If the first argument
// is "probe", it only checks a node with the same configuration.
func run(ctx context.Context, args, environ []string, out io.Writer) error {
	if err := memory.Hide(); err != nil {
		return err
	}
	isProbe := len(args) > 0 && args[0] == "probe"
	if isProbe {
		args = args[1:]
	}
	cfg, err := config.Load(config.API, args, environ, out)
	if errors.Is(err, config.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if isProbe {
		if cfg.MetricsAddr != "" {
			return probe(ctx, cfg.MetricsAddr, false)
		}
		return probe(ctx, cfg.Addr, cfg.TLS.Cert != "")
	}
	logger := telemetry.NewLogger(cfg.LogHandler(out)).With("process", "api")
	if len(cfg.Unknown) > 0 {
		logger.WarnContext(ctx, "unknown PERDURE_ variables are ignored", "variables", cfg.Unknown)
	}
	isReady, err := serve(ctx, cfg, logger)
	if stopped := ctx.Err() != nil && !isReady; stopped && err != nil {
		logger.InfoContext(ctx, "stopped before the API was ready", "error", err)
		return nil // a stop that was requested is no failure
	}
	return err
}

// serve serves a configured API until ctx ends. isReady reports that it has accepted requests.
func serve(ctx context.Context, cfg *config.Config, logger *slog.Logger) (isReady bool, err error) {
	// Definitions and authentication are checked before the connections, so that a mistake in them
	// is reported without the wait for NATS and Temporal.
	folder, err := loadFolder(cfg.Agents)
	if err != nil {
		return false, err
	}

	authenticator, err := callers.New(ctx, cfg.Auth, cfg.Addr, cfg.Policies.Roles.PlatformAdmin, logger)
	if err != nil {
		return false, err
	}
	defer authenticator.Close()
	policies, err := cfg.Policies.Load()
	if err != nil {
		return false, err
	}
	principals, err := cfg.OpenPrincipals(logger)
	if err != nil {
		return false, err
	}
	defer principals.Close()
	quotas, err := quota.Open(cfg.Quotas, cfg.Auth.Mode == config.AuthNone, logger)
	if err != nil {
		return false, &config.VariableError{Name: "PERDURE_QUOTAS_FILE", Err: err}
	}
	defer quotas.Close()
	rules, err := retention.Open(cfg.Retention, logger)
	if err != nil {
		return false, &config.VariableError{Name: "PERDURE_RETENTION_FILE", Err: err}
	}
	defer rules.Close()

	sources, err := source.Open(cfg.EventSources, cfg.Getenv)
	if err != nil {
		return false, &config.VariableError{Name: config.EventSourcesName, Err: err}
	}

	serverTLS, closeTLS, err := openTLS(cfg, logger)
	if err != nil {
		return false, err
	}
	defer closeTLS()

	// Deferred calls run in the opposite order: telemetry ends after the connections whose use it
	// reports.
	tel, err := telemetry.Start(ctx, "perdure-api", cfg.Getenv)
	if err != nil {
		return false, err
	}
	defer tel.Shutdown(context.WithoutCancel(ctx), logger)
	metrics, err := metricserver.Start(ctx, cfg.MetricsAddr, tel.Metrics(), logger)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, metrics.Stop()) }()
	cfg.Temporal.DataConverter = runs.DataConverter()
	tel.Instrument(&cfg.Temporal)
	connections, err := connect.Dial(ctx, cfg, "perdure-api", logger)
	if err != nil {
		return false, err
	}
	defer connections.Close()
	// Temporal refuses to start a workflow with an unknown search attribute, so they are created
	// before the API accepts inputs.
	if err := connect.EnsureSearchAttributes(ctx, connections.Temporal, connections.Namespace, searchAttributes, logger); err != nil {
		return false, err
	}

	listener, err := listen(ctx, cfg.Addr)
	if err != nil {
		return false, err
	}
	log, stored, err := connections.OpenStores(ctx, cfg)
	if err != nil {
		return false, err
	}
	browserSessions, err := authenticator.OpenSessions(ctx, cfg.Auth.Sessions, cfg.PublicURL, log, logger)
	if err != nil {
		return false, errors.Join(err, listener.Close())
	}
	defer browserSessions.Close()
	// A node that has started closes the listener when it stops.
	node, err := apinode.Start(ctx, apinode.Config{
		Listener:    listener,
		TLS:         serverTLS,
		Snapshots:   snapshot.NewStore(log),
		Temporal:    connections.Temporal,
		Agents:      folder.Agents,
		Known:       folder.Names,
		Directory:   func() agentroutes.Directory { return agentroutes.Directory{Agents: folder.Agents} },
		ForceAgents: cfg.ForceAgents,
		Origins:     cfg.Origins,
		Auth:        authenticator,
		Sessions:    browserSessions,
		Policies:    policies,
		Principals:  principals,
		Sources:     sources,
		ParkAfter:   cfg.ParkAfter,
		Retention:   rules,
		Strict:      cfg.Strict,
		Sockets:     cfg.MaxSockets,
		Streams:     cfg.MaxStreams,
		Quotas:      quotas,
		LinkKey:     cfg.LinkKey,
		PublicURL:   cfg.PublicURL,
		Console:     cfg.Console, Files: stored,
		Environment: environment(cfg, connections.Namespace),
		Logger:      logger,
	})
	if err != nil {
		return false, errors.Join(err, listener.Close())
	}
	metrics.SetReady(node.Handler())
	logger.InfoContext(ctx, "serving", "addr", listener.Addr().String(), "agents", len(folder.Agents), "metrics", metrics.Addr())
	memory.ReleaseText(ctx, logger)
	<-ctx.Done()
	logger.InfoContext(ctx, "stopping")
	return true, node.Stop(context.WithoutCancel(ctx))
}

// loadFolder reads the folder of definitions; "" = there are none.
func loadFolder(name string) (*agents.Folder, error) {
	if name == "" {
		return &agents.Folder{}, nil
	}
	return agents.LoadDir(name)
}

// openTLS returns how the API serves TLS; nil = it serves plain HTTP. The caller must call stop.
func openTLS(cfg *config.Config, logger *slog.Logger) (server *tls.Config, stop func(), err error) {
	if cfg.TLS.Cert == "" {
		return nil, func() {}, nil
	}
	files, err := certificates.Open(cfg.TLS, logger)
	if err != nil {
		return nil, nil, err
	}
	return files.Config(), files.Close, nil
}

// listen opens the listener of the API. Errors: *config.VariableError.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, &config.VariableError{Name: "PERDURE_ADDR", Err: err}
	}
	return listener, nil
}

// environment describes the process and the servers that it uses.
func environment(cfg *config.Config, namespace string) systemroutes.Environment {
	return systemroutes.Environment{
		Mode: string(config.API), NeedsToken: cfg.Auth.NeedsToken(), TemporalUI: cfg.TemporalUI, TraceURL: cfg.TraceURL,
		TemporalAddress: cmp.Or(cfg.Temporal.HostPort, client.DefaultHostPort), TemporalNamespace: namespace,
	}
}
