package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"go.temporal.io/sdk/client"
	temporallog "go.temporal.io/sdk/log"
	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api/agentroutes"
	"github.com/perdure/perdure/api/systemroutes"
	"github.com/perdure/perdure/internal/approvals/webhook"
	"github.com/perdure/perdure/internal/auth/callers"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/auth/principals"
	"github.com/perdure/perdure/internal/auth/sessions"
	"github.com/perdure/perdure/internal/control/budget"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/control/retention"
	"github.com/perdure/perdure/internal/events/source"
	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/internal/process/apinode"
	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/internal/process/connect"
	"github.com/perdure/perdure/internal/process/devserver"
	"github.com/perdure/perdure/internal/process/metricserver"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/internal/process/workernode"
	"github.com/perdure/perdure/internal/transport/egress"
	"github.com/perdure/perdure/internal/workers/assertion"
	"github.com/perdure/perdure/internal/workers/models"
	"github.com/perdure/perdure/internal/workers/toolset"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream/snapshot"
)

// devProcess is the process of "perdure dev": its configuration, and what start has opened, in the
// order of the fields. One goroutine uses it at a time: that of the command, and between watch and
// close that of the watch.
type devProcess struct {
	options devOptions
	config  *config.Config
	logger  *slog.Logger

	telemetry *telemetry.Telemetry
	signer    *assertion.Signer    // of the tools' assertions
	newKey    []byte               // its key, to be stored; nil = it is stored, or from the configuration
	metrics   *metricserver.Server // nil = there are none
	devDefinitions
	webhooks      *webhook.Sender
	listener      net.Listener // of the API
	uiListener    net.Listener // of Temporal's UI; nil = there is none
	authenticator *callers.Callers
	sessions      *sessions.Sessions // nil = there are none
	policies      *policy.Engine
	principals    *principals.Principals
	quotas        *quota.Table
	retention     *retention.Rules
	sources       *source.Set       // of events
	servers       *devserver.Server // Temporal and NATS
	nats          *nats.Conn
	// temporal is shared by both nodes, because an eager workflow start requires a worker of the
	// same client.
	temporal  client.Client
	snapshots *snapshot.Store // shared, because both nodes use the same cache of snapshots
	files     *files.Store
	prices    *budget.File
	worker    *workernode.Node // nil = there is none
	api       *apinode.Node

	closers []func() error // what close calls, the last one first
}

// devDefinitions is what the process has of the folder with the definitions.
type devDefinitions struct {
	folder *agents.Folder
	names  atomic.Pointer[agents.Names] // of the definitions; the API reads them concurrently
	// directory is what the API tells of the folder; it reads it concurrently.
	directory atomic.Pointer[agentroutes.Directory]
	problem   string // the last error of the definitions that was printed; "" = they are valid
	tools     *toolset.Set
	declared  string // the declarations of the tools and scripts that the worker has
}

// onClose has close call f, before everything that was opened earlier.
func (p *devProcess) onClose(f func() error) { p.closers = append(p.closers, f) }

// close stops what was started, in the opposite order, and returns all errors.
func (p *devProcess) close() error {
	var err error
	for _, f := range slices.Backward(p.closers) {
		err = errors.Join(err, f())
	}
	return err
}

// start opens everything. After an error the caller calls close, too. Mistakes in definitions, and
// addresses in use, are reported before the embedded servers start, which takes a second or more.
func (p *devProcess) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		p.startTelemetry, p.listen, p.openRules, p.serveProfiles, p.listenUI, p.openSigner, p.loadDefinitions, p.startServers, p.storeKey, p.connect, p.startUI, p.startNodes,
		p.writeAddresses,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startTelemetry starts the export of traces, and serves metrics if the configuration has an address.
func (p *devProcess) startTelemetry(ctx context.Context) (err error) {
	if p.telemetry, err = telemetry.Start(ctx, "perdure", p.config.Getenv); err != nil {
		return err
	}
	p.onClose(func() error {
		p.telemetry.Shutdown(context.WithoutCancel(ctx), p.logger)
		return nil
	})
	if p.metrics, err = metricserver.Start(ctx, p.config.MetricsAddr, p.telemetry.Metrics(), p.logger); err != nil {
		return err
	}
	p.onClose(p.metrics.Stop)
	return nil
}

// loadDefinitions reads the definitions, and opens the tools and the webhooks. The tools are closed
// after the nodes, whose tool calls use them.
func (p *devProcess) loadDefinitions(context.Context) (err error) {
	if p.folder, err = loadFolder(p.options.agents); errors.As(err, new(*missingFolderError)) {
		p.folder, p.problem = &agents.Folder{}, err.Error()
	} else if err != nil {
		return err
	}
	p.names.Store(new(p.folder.Names()))
	p.directory.Store(&agentroutes.Directory{Agents: p.folder.Agents, Problem: p.problem})
	if p.declared, err = declarations(p.folder); err != nil {
		return err
	}
	if value := p.config.Getenv("PERDURE_ALLOW_PRIVATE_HOSTS"); value != "" && !p.options.privateGiven {
		if p.options.allowPrivateHosts, err = strconv.ParseBool(value); err != nil {
			return fmt.Errorf("PERDURE_ALLOW_PRIVATE_HOSTS: %w", err)
		}
	}
	if p.tools, err = p.openTools(p.folder); err != nil {
		return err
	}
	p.onClose(func() error {
		p.tools.Close()
		return nil
	})
	if p.webhooks, err = webhook.Open(p.config.Webhooks, p.config.Getenv, egress.PolicyFor(p.options.allowPrivateHosts)); err != nil {
		return err
	}
	p.onClose(func() error {
		p.webhooks.Close()
		return nil
	})
	p.webhooks.ConsoleURL = p.config.ConsoleURL()
	return nil
}

// listen opens the listener of the API.
func (p *devProcess) listen(ctx context.Context) (err error) {
	if p.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", p.options.addr); err != nil {
		return fmt.Errorf("--addr: %w", err)
	}
	p.onClose(func() error {
		_ = p.listener.Close() // the API has closed it, if that has started
		return nil
	})
	return nil
}

// openRules opens what decides about the callers of the API and about their threads: policies,
// authentication, configured principals, quotas, times to live and the sources of events.
func (p *devProcess) openRules(ctx context.Context) (err error) {
	if p.policies, err = p.config.Policies.Load(); err != nil {
		return err
	}
	if p.authenticator, err = callers.New(ctx, p.config.Auth, p.listener.Addr().String(), p.config.Policies.Roles.PlatformAdmin, p.logger); err != nil {
		return err
	}
	p.onClose(func() error {
		p.authenticator.Close()
		return nil
	})
	if p.principals, err = p.config.OpenPrincipals(p.logger); err != nil {
		return err
	}
	p.onClose(func() error {
		p.principals.Close()
		return nil
	})
	if p.quotas, err = quota.Open(p.config.Quotas, p.config.Auth.Mode == config.AuthNone, p.logger); err != nil {
		return &config.VariableError{Name: "PERDURE_QUOTAS_FILE", Err: err}
	}
	p.onClose(func() error {
		p.quotas.Close()
		return nil
	})
	if p.retention, err = retention.Open(p.config.Retention, p.logger); err != nil {
		return &config.VariableError{Name: "PERDURE_RETENTION_FILE", Err: err}
	}
	p.onClose(func() error {
		p.retention.Close()
		return nil
	})
	if p.sources, err = source.Open(p.config.EventSources, p.config.Getenv); err != nil {
		return &config.VariableError{Name: config.EventSourcesName, Err: err}
	}
	return nil
}

// serveProfiles serves CPU profiles, if the options name an address for them.
func (p *devProcess) serveProfiles(ctx context.Context) error {
	if p.options.pprof == "" {
		return nil
	}
	if err := serveProfiles(ctx, p.options.pprof); err != nil {
		return fmt.Errorf("--pprof: %w", err)
	}
	return nil
}

// startServers starts the embedded servers. It then removes the file of addresses that a killed
// process has left, so that the file exists only while this process is ready.
func (p *devProcess) startServers(ctx context.Context) (err error) {
	p.servers, err = devserver.Start(ctx, devserver.Options{
		Data:          p.options.data,
		TemporalPort:  p.options.temporalPort,
		NATSPort:      p.options.natsPort,
		WorkflowCache: p.config.WorkflowCache,
		Logger:        p.logger,
	})
	if err != nil {
		return err
	}
	p.onClose(func() error { return p.servers.Stop(context.WithoutCancel(ctx)) })
	if err := os.Remove(p.addressesFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("addresses: %w", err)
	}
	return nil
}

// connect connects to the embedded servers.
func (p *devProcess) connect(context.Context) (err error) {
	if p.nats, err = p.servers.ConnectNATS(nats.Name("perdure dev")); err != nil {
		return fmt.Errorf("connect to NATS: %w", err)
	}
	p.onClose(func() error {
		p.nats.Close()
		return nil
	})
	options := client.Options{
		HostPort:          p.servers.TemporalAddress(),
		Namespace:         p.servers.Namespace(),
		ConnectionOptions: client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}}, // the traffic stays on this machine
		DataConverter:     runs.DataConverter(),
		Logger:            temporallog.NewStructuredLogger(p.logger),
	}
	p.telemetry.Instrument(&options)
	if p.temporal, err = client.Dial(options); err != nil {
		return fmt.Errorf("connect to Temporal: %w", err)
	}
	p.onClose(func() error {
		p.temporal.Close()
		return nil
	})
	return nil
}

// startNodes starts the worker and the API concurrently. It also fails the tasks that the previous
// process of the data directory has left under way, so that Temporal repeats them at once: that
// process is dead, because this process has the lock of the directory. close stops both nodes, also
// if only one of them has started.
func (p *devProcess) startNodes(ctx context.Context) error {
	log, err := connect.OpenLog(ctx, p.config, p.nats)
	if err != nil {
		return err
	}
	p.snapshots = snapshot.NewStore(log)
	stored, bucket, err := connect.OpenFiles(ctx, p.config, log)
	if err != nil {
		return err
	}
	p.files = stored
	p.onClose(bucket.Close)
	origin := cmp.Or(p.config.PublicURL, "http://"+p.listener.Addr().String())
	if p.sessions, err = p.authenticator.OpenSessions(ctx, p.config.Auth.Sessions, origin, log, p.logger); err != nil {
		return err
	}
	p.onClose(func() error {
		p.sessions.Close()
		return nil
	})
	if err := p.checkNames(ctx, p.folder); err != nil {
		return err
	}
	if p.prices, err = budget.LoadIf(p.config.Prices); err != nil {
		return err
	}
	var group errgroup.Group
	// The two nodes and FailOrphans do not depend on each other: a run that the API accepts before
	// the worker polls waits in its task queue.
	group.Go(func() (err error) {
		if p.options.noWorker {
			return nil
		}
		p.worker, err = workernode.Start(ctx, p.workerConfig(p.folder))
		return err
	})
	group.Go(func() (err error) {
		p.api, err = apinode.Start(ctx, p.apiConfig())
		return err
	})
	group.Go(func() error {
		_, err := devserver.FailOrphans(ctx, p.temporal, p.servers.Orphans())
		return err
	})
	if err = group.Wait(); err == nil {
		p.metrics.SetReady(p.api.Handler())
	}
	p.onClose(func() error {
		var stopping errgroup.Group
		if p.api != nil {
			stopping.Go(func() error { return p.api.Stop(context.WithoutCancel(ctx)) })
		}
		if p.worker != nil {
			p.worker.Stop(context.WithoutCancel(ctx))
		}
		return stopping.Wait()
	})
	return err
}

// watch starts to watch the folder of definitions. Changes, and what is wrong with them, are
// printed to out. If the system allows no watch, the process runs without it.
func (p *devProcess) watch(ctx context.Context, out io.Writer) {
	w, err := watchFolder(ctx, p.options.agents, func(ctx context.Context) { p.reload(ctx, out) }, p.logger)
	if err != nil {
		p.logger.WarnContext(ctx, "changes of definitions are not noticed", "folder", p.options.agents, "error", err)
		return
	}
	p.onClose(w.stop)
}

// workerConfig returns the configuration of the worker, with the scripts of a folder.
func (p *devProcess) workerConfig(folder *agents.Folder) workernode.Config {
	cfg := p.config
	options := models.Options{
		Getenv:   cfg.Getenv,
		Silence:  cfg.ModelSilence,
		Scripts:  folder.Scripts,
		Secrets:  cfg.Secrets,
		FailFast: true,
	}
	return workernode.Config{
		Alone:      true,
		Snapshots:  p.snapshots,
		Temporal:   p.temporal,
		Models:     models.FromEnv(options),
		ModelNames: options.Names,
		Tools:      p.tools.Registry(),
		Secret:     toolset.Secrets(p.config.Getenv), AllowPrivate: p.options.allowPrivateHosts, RemoteSilence: cfg.ModelSilence,
		ModelLimits: cfg.ModelLimits,
		Signer:      p.signer,
		Budgets: workernode.Budgets{Prices: p.prices, TenantBudget: budget.Day{
			Amounts: budget.AmountsOf(cfg.TenantTokensPerDay, cfg.TenantCostPerDay),
			Soft:    budget.AmountsOf(cfg.TenantSoftTokensPerDay, cfg.TenantSoftCostPerDay),
		}},
		Queues:        workernode.Queues{Tools: p.tools.TaskQueues()},
		Webhooks:      p.webhooks,
		Files:         p.files,
		Policies:      p.policies,
		Principals:    p.principals,
		Sources:       p.sources,
		Quotas:        p.quotas,
		WorkflowCache: cfg.WorkflowCache,
		ToolGrace:     cfg.ToolGrace,
		Logger:        p.logger,
	}
}

// apiConfig returns the configuration of the API.
func (p *devProcess) apiConfig() apinode.Config {
	cfg := p.config
	return apinode.Config{
		Listener:    p.listener,
		Snapshots:   p.snapshots,
		Temporal:    p.temporal,
		Agents:      p.folder.Agents,
		Known:       func() agents.Names { return *p.names.Load() },
		Directory:   func() agentroutes.Directory { return *p.directory.Load() },
		ForceAgents: cfg.ForceAgents,
		Origins:     origins(cfg.Origins),
		Auth:        p.authenticator,
		Sessions:    p.sessions,
		Policies:    p.policies,
		Principals:  p.principals,
		Sources:     p.sources,
		Quotas:      p.quotas,
		ParkAfter:   cfg.ParkAfter,
		Retention:   p.retention,
		Strict:      cfg.Strict,
		Sockets:     cfg.MaxSockets,
		Streams:     cfg.MaxStreams,
		Logger:      p.logger,
		LinkKey:     cfg.LinkKey,
		PublicURL:   cfg.PublicURL,
		Files:       p.files,
		Console:     cfg.Console,
		Environment: systemroutes.Environment{
			Mode: string(config.Dev), NeedsToken: cfg.Auth.NeedsToken(), TemporalUI: cmp.Or(cfg.TemporalUI, p.uiURL()), TraceURL: cfg.TraceURL,
			TemporalAddress: p.servers.TemporalAddress(), TemporalNamespace: p.servers.Namespace(),
		},
	}
}

// checkNames refuses unknown names in definitions: names that neither the folder, nor the built-in
// tools, nor earlier publications, nor --known have. With --no-worker another worker may have them,
// so they are only logged.
func (p *devProcess) checkNames(ctx context.Context, folder *agents.Folder) error {
	definitions, err := catalog.Open(ctx, p.snapshots.Log())
	if err != nil {
		return err
	}
	published, err := definitions.Names(ctx)
	if err != nil {
		return err
	}
	err = folder.CheckNames(agents.BuiltIn().With(agents.Names{Agents: published, Others: p.options.known}))
	if err == nil {
		return nil
	}
	if p.options.noWorker {
		p.logger.WarnContext(ctx, "the definitions refer to names that this process does not know", "names", err.Error())
		return nil
	}
	return fmt.Errorf("%w\nIf another worker knows a name, pass the name with --known", err)
}

// addressesFile returns the path of the file of addresses.
func (p *devProcess) addressesFile() string { return filepath.Join(p.options.data, "addresses.json") }

// addresses returns the addresses of the API and of the embedded servers.
func (p *devProcess) addresses() addresses {
	return addresses{
		API:        "http://" + p.listener.Addr().String(),
		Temporal:   p.servers.TemporalAddress(),
		TemporalUI: p.uiURL(),
		Namespace:  p.servers.Namespace(),
		NATS:       p.servers.NATSURL(),
		Metrics:    p.metrics.Addr(),
	}
}

// writeAddresses writes the file of addresses, which close removes first. It may be read by its
// owner only.
func (p *devProcess) writeAddresses(context.Context) error {
	body, err := json.MarshalIndent(p.addresses(), "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.addressesFile(), append(body, '\n'), 0o600); err != nil {
		return fmt.Errorf("addresses: %w", err)
	}
	p.onClose(func() error {
		_ = os.Remove(p.addressesFile()) // a later start removes it, too
		return nil
	})
	return nil
}
