package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	temporallog "go.temporal.io/sdk/log"
	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/internal/approvals/webhook"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/callers"
	"github.com/perdure/perdure/internal/control/budget"
	"github.com/perdure/perdure/internal/process/apinode"
	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/internal/process/devserver"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/internal/process/workernode"
	"github.com/perdure/perdure/internal/transport/egress"
	"github.com/perdure/perdure/internal/workers/models"
	"github.com/perdure/perdure/internal/workers/toolset"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// devOptions are the flags of "perdure dev".
type devOptions struct {
	addr, data, agents     string
	agentsForce            bool
	pprof                  string
	temporalPort, natsPort int
	allowPrivateHosts      bool
	noWorker               bool
	known                  []string
	privateGiven           bool // --allow-private-hosts was given; it has precedence over the variable
	logLevel               slog.Level
}

// devCommand returns the command "perdure dev".
func devCommand(environ []string) *cobra.Command {
	var o devOptions
	level := "warn"
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run Temporal, NATS, worker and API in one process",
		Long: `Run a Temporal server on SQLite, a NATS server with JetStream, a worker and the API in one process, with all data in
one directory. After a crash, start it again with the same directory: every run continues.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.logLevel.UnmarshalText([]byte(level)); err != nil {
				return fmt.Errorf("--log-level: %w", err)
			}
			o.privateGiven = cmd.Flags().Changed("allow-private-hosts")
			return runDev(cmd.Context(), o, environ, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.addr, "addr", "127.0.0.1:8080", "address of the API; port 0 is any free port")
	f.StringVar(&o.data, "data", ".perdure", "data directory")
	f.StringVar(&o.agents, "agents", "agents", "directory of agents, tools, MCP servers and scripts")
	f.BoolVar(&o.agentsForce, "agents-force", false, "publish the directory's definitions even if newer ones were published over HTTP")
	f.IntVar(&o.temporalPort, "temporal-port", 7233, "port of Temporal's frontend on 127.0.0.1; 0 is any free port")
	f.IntVar(&o.natsPort, "nats-port", 4222, "port of NATS on 127.0.0.1; 0 is any free port")
	f.BoolVar(&o.allowPrivateHosts, "allow-private-hosts", true, "HTTP tools, MCP servers and webhooks may use addresses on loopback and private networks")
	f.BoolVar(&o.noWorker, "no-worker", false, "run without a worker: another process runs the worker (docs/guides/programs.md)")
	f.StringSliceVar(&o.known, "known", nil, "names, or patterns with *, that another worker knows; may be repeated")
	f.StringVar(&o.pprof, "pprof", "", "address on loopback that serves CPU profiles")
	_ = f.MarkHidden("pprof")
	f.StringVar(&level, "log-level", level, "lowest level that is logged: debug, info, warn or error")
	return cmd
}

// addresses are the contents of <data>/addresses.json, a file that exists while the process is
// ready. Tests and scripts read it to find the ports.
type addresses struct {
	API       string `json:"api"`
	Temporal  string `json:"temporal"`
	Namespace string `json:"namespace"`
	NATS      string `json:"nats"`
}

// runDev starts everything in the order of dependencies, waits until ctx ends, and stops everything
// in the opposite order. If ctx ends during the start, it stops what has started and returns nil.
// out is for the user, errOut for the log.
func runDev(ctx context.Context, o devOptions, environ []string, out, errOut io.Writer) (err error) {
	cfg, err := config.Load(config.Dev, nil, environ, out)
	if err != nil {
		return err
	}
	cfg.ForceAgents = cfg.ForceAgents || o.agentsForce
	if cfg.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // the embedded Temporal server produces much garbage and keeps little memory
	}
	logger := telemetry.NewLogger(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: o.logLevel}))
	isReady := false
	defer func() {
		if stopped := ctx.Err() != nil && !isReady; stopped && err != nil {
			logger.InfoContext(ctx, "stopped before it was ready", "error", err)
			err = nil // a stop that was requested is no failure
		}
	}()
	p := &devProcess{options: o, config: cfg, logger: logger}
	defer func() { err = errors.Join(err, p.close()) }()
	if err := p.start(ctx); err != nil {
		return err
	}
	isReady = true
	announce(out, o, p.addresses(), p.folder.Agents, cfg.Getenv)
	<-ctx.Done()
	fmt.Fprintln(out, "stopping …")
	return nil
}

// devProcess is the process of "perdure dev": its configuration, and what start has opened, in the
// order of the fields. One goroutine uses it.
type devProcess struct {
	options devOptions
	config  *config.Config
	logger  *slog.Logger

	telemetry     *telemetry.Telemetry
	folder        *agents.Folder // the definitions
	tools         *toolset.Set
	webhooks      *webhook.Sender
	listener      net.Listener // of the API
	authenticator auth.Authenticator
	servers       *devserver.Server // Temporal and NATS
	nats          *nats.Conn
	// temporal is shared by both nodes, because an eager workflow start requires a worker of the
	// same client.
	temporal client.Client

	closers []func() error // what close calls, the last one first
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
		p.startTelemetry, p.loadDefinitions, p.listen, p.startServers, p.connect, p.startNodes, p.writeAddresses,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startTelemetry starts the export of metrics and traces.
func (p *devProcess) startTelemetry(ctx context.Context) (err error) {
	if p.telemetry, err = telemetry.Start(ctx, "perdure", p.config.Getenv); err != nil {
		return err
	}
	p.onClose(func() error {
		p.telemetry.Shutdown(context.WithoutCancel(ctx), p.logger)
		return nil
	})
	return nil
}

// loadDefinitions reads the definitions, and opens the tools and the webhooks. The tools are closed
// after the nodes, whose tool calls use them.
func (p *devProcess) loadDefinitions(context.Context) (err error) {
	if p.folder, err = agents.LoadDir(p.options.agents); err != nil {
		return err
	}
	if value := p.config.Getenv("PERDURE_ALLOW_PRIVATE_HOSTS"); value != "" && !p.options.privateGiven {
		if p.options.allowPrivateHosts, err = strconv.ParseBool(value); err != nil {
			return fmt.Errorf("PERDURE_ALLOW_PRIVATE_HOSTS: %w", err)
		}
	}
	p.tools, err = toolset.Open(toolset.Config{Folder: p.folder, Getenv: p.config.Getenv, AllowPrivate: p.options.allowPrivateHosts, Logger: p.logger})
	if err != nil {
		return err
	}
	p.onClose(func() error {
		p.tools.Close()
		return nil
	})
	if p.webhooks, err = webhook.Open(p.config.Webhooks, p.config.Getenv, p.options.allowPrivateHosts); err != nil {
		return err
	}
	p.onClose(func() error {
		p.webhooks.Close()
		return nil
	})
	return nil
}

// listen opens the listener of the API, and that of the profiles if the options name one.
func (p *devProcess) listen(ctx context.Context) (err error) {
	if p.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", p.options.addr); err != nil {
		return fmt.Errorf("--addr: %w", err)
	}
	p.onClose(func() error {
		_ = p.listener.Close() // the API has closed it, if that has started
		return nil
	})
	if p.authenticator, err = callers.New(ctx, p.config.Auth, p.listener.Addr().String(), p.logger); err != nil {
		return err
	}
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
		Data:         p.options.data,
		TemporalPort: p.options.temporalPort,
		NATSPort:     p.options.natsPort,
		Logger:       p.logger,
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

// startNodes starts the worker and the API concurrently. It also fails the activities that the
// previous process of the data directory has left running, so that Temporal retries them at once:
// that process is dead, because this process has the lock of the directory. close stops both nodes,
// also if only one of them has started.
func (p *devProcess) startNodes(ctx context.Context) error {
	log, err := stream.Open(ctx, p.nats, stream.Options{})
	if err != nil {
		return err
	}
	if err := p.checkNames(ctx, log); err != nil {
		return err
	}
	snapshots := snapshot.NewStore(log) // shared, because both nodes use the same cache of snapshots
	prices, err := budget.LoadIf(p.config.Prices)
	if err != nil {
		return err
	}
	var (
		workerNode *workernode.Node
		apiNode    *apinode.Node
		group      errgroup.Group
	)
	// The two nodes and FailOrphans do not depend on each other: a run that the API accepts before
	// the worker polls waits in its task queue.
	group.Go(func() (err error) {
		if p.options.noWorker {
			return nil
		}
		workerNode, err = workernode.Start(ctx, p.workerConfig(snapshots, prices))
		return err
	})
	group.Go(func() (err error) {
		apiNode, err = apinode.Start(ctx, p.apiConfig(snapshots))
		return err
	})
	group.Go(func() error {
		_, err := devserver.FailOrphans(ctx, p.temporal, p.servers.Orphans())
		return err
	})
	err = group.Wait()
	p.onClose(func() error {
		var stopping errgroup.Group
		if apiNode != nil {
			stopping.Go(func() error { return apiNode.Stop(context.WithoutCancel(ctx)) })
		}
		if workerNode != nil {
			workerNode.Stop(context.WithoutCancel(ctx))
		}
		return stopping.Wait()
	})
	return err
}

// workerConfig returns the configuration of the worker.
func (p *devProcess) workerConfig(snapshots *snapshot.Store, prices *budget.File) workernode.Config {
	cfg := p.config
	return workernode.Config{
		Alone:     true,
		Snapshots: snapshots,
		Temporal:  p.temporal,
		Models: models.FromEnv(models.Options{
			Getenv:   cfg.Getenv,
			Silence:  cfg.ModelSilence,
			Scripts:  p.folder.Scripts,
			Secrets:  cfg.Secrets(),
			FailFast: true,
		}),
		Tools: p.tools.Registry(),
		Budgets: workernode.Budgets{Prices: prices, TenantBudget: budget.Day{
			Amounts: budget.AmountsOf(cfg.TenantTokensPerDay, cfg.TenantCostPerDay),
			Soft:    budget.AmountsOf(cfg.TenantSoftTokensPerDay, cfg.TenantSoftCostPerDay),
		}},
		Queues:        workernode.Queues{Tools: p.tools.TaskQueues()},
		Webhooks:      p.webhooks,
		WorkflowCache: cfg.WorkflowCache,
		ToolGrace:     cfg.ToolGrace,
		Logger:        p.logger,
	}
}

// apiConfig returns the configuration of the API.
func (p *devProcess) apiConfig(snapshots *snapshot.Store) apinode.Config {
	cfg := p.config
	return apinode.Config{
		Listener:    p.listener,
		Snapshots:   snapshots,
		Temporal:    p.temporal,
		Agents:      p.folder.Agents,
		Known:       p.folder.Names(),
		ForceAgents: cfg.ForceAgents,
		Origins:     origins(cfg.Origins),
		Auth:        p.authenticator,
		AdminRole:   cfg.Auth.AdminRole,
		ParkAfter:   cfg.ParkAfter,
		Strict:      cfg.Strict,
		Sockets:     cfg.MaxSockets,
		Streams:     cfg.MaxStreams,
		Metrics:     p.telemetry.Metrics(),
		Logger:      p.logger,
		LinkKey:     cfg.LinkKey,
		PublicURL:   cfg.PublicURL,
	}
}

// checkNames refuses unknown names in definitions: names that neither the folder, nor the built-in
// tools, nor earlier publications, nor --known have. With --no-worker another worker may have them,
// so they are only logged.
func (p *devProcess) checkNames(ctx context.Context, log *stream.Log) error {
	definitions, err := catalog.Open(ctx, log)
	if err != nil {
		return err
	}
	published, err := definitions.Names(ctx)
	if err != nil {
		return err
	}
	err = p.folder.CheckNames(agents.BuiltIn().With(agents.Names{Agents: published, Others: p.options.known}))
	if err == nil {
		return nil
	}
	if p.options.noWorker {
		p.logger.WarnContext(ctx, "the definitions refer to names that this process does not know", "names", err.Error())
		return nil
	}
	return fmt.Errorf("%w\nIf another worker knows a name, pass the name with --known", err)
}

// devOrigins are the origins of pages that this machine serves.
var devOrigins = []string{"http://localhost:*", "http://127.0.0.1:*"}

// origins adds devOrigins to the configured ones. "*" stays alone, because it means all origins
// only when it is alone.
func origins(configured []string) []string {
	if slices.Contains(configured, "*") {
		return configured
	}
	return slices.Concat(devOrigins, configured)
}

// addressesFile returns the path of the file of addresses.
func (p *devProcess) addressesFile() string { return filepath.Join(p.options.data, "addresses.json") }

// addresses returns the addresses of the API and of the embedded servers.
func (p *devProcess) addresses() addresses {
	return addresses{
		API:       "http://" + p.listener.Addr().String(),
		Temporal:  p.servers.TemporalAddress(),
		Namespace: p.servers.Namespace(),
		NATS:      p.servers.NATSURL(),
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

// announce prints the addresses, and an example request for the first agent that needs no API key.
func announce(out io.Writer, o devOptions, a addresses, definitions []*agents.Definition, getenv func(string) string) {
	names := make([]string, len(definitions))
	first := ""
	for i, d := range definitions {
		names[i] = d.Name
		if provider, _ := d.ModelProvider(); provider == "scripted" && first == "" {
			first = d.Name
		}
	}
	if first == "" && len(names) > 0 {
		first = names[0]
	}
	fmt.Fprintf(out, `
Perdure is ready.

  api        %s
  agents     %s   (from %s)
  data       %s
  Temporal   %s, namespace %s
  NATS       %s
  models     %s

`, a.API, strings.Join(names, ", "), o.agents, o.data, a.Temporal, a.Namespace, a.NATS, providers(getenv))
	if first == "" {
		return
	}
	fmt.Fprintf(out, `Try it:

  curl -N %s/v1/agents/%s/runs -H 'Content-Type: application/json' -d '
    {"threadId": "thread-%d", "runId": "run-1", "messages":
      [{"id": "m1", "role": "user", "content": "What is 12*7, and what time is it?"}]}'

`, a.API, first, time.Now().Unix())
}

// withoutSecrets returns the scheme, host and path of a URL: a user, a query or a fragment may have
// credentials.
func withoutSecrets(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return "an invalid URL"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// providers describes which model providers can be used: scripted always, the others with an API
// key or a base URL.
func providers(getenv func(string) string) string {
	list := []string{"scripted"}
	for _, name := range []string{"openai", "anthropic", "gemini"} {
		prefix := strings.ToUpper(name)
		if base := getenv(prefix + "_BASE_URL"); base != "" {
			name += " at " + withoutSecrets(base)
		} else if getenv(prefix+"_API_KEY") == "" && (name != "gemini" || getenv("GOOGLE_API_KEY") == "") {
			name += " (" + prefix + "_API_KEY not set)"
		}
		list = append(list, name)
	}
	return strings.Join(list, ", ")
}
