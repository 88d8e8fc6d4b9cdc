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
	ready := false
	defer func() {
		if stopped := ctx.Err() != nil && !ready; stopped && err != nil {
			logger.InfoContext(ctx, "stopped before it was ready", "error", err)
			err = nil // a stop that was requested is no failure
		}
	}()
	tel, err := telemetry.Start(ctx, "perdure", cfg.Getenv)
	if err != nil {
		return err
	}
	defer tel.Shutdown(context.WithoutCancel(ctx), logger)
	folder, err := agents.LoadDir(o.agents)
	if err != nil {
		return err
	}
	if value := cfg.Getenv("PERDURE_ALLOW_PRIVATE_HOSTS"); value != "" && !o.privateGiven {
		if o.allowPrivateHosts, err = strconv.ParseBool(value); err != nil {
			return fmt.Errorf("PERDURE_ALLOW_PRIVATE_HOSTS: %w", err)
		}
	}
	// Mistakes in definitions, and addresses in use, are reported before the embedded servers
	// start, which takes a second or more.
	set, err := toolset.Open(toolset.Config{Folder: folder, Getenv: cfg.Getenv, AllowPrivate: o.allowPrivateHosts, Logger: logger})
	if err != nil {
		return err
	}
	defer set.Close() // after the nodes, whose tool calls use it
	hooks, err := webhook.Open(cfg.Webhooks, cfg.Getenv, egress.PolicyFor(o.allowPrivateHosts))
	if err != nil {
		return err
	}
	defer hooks.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.addr)
	if err != nil {
		return fmt.Errorf("--addr: %w", err)
	}
	defer func() { _ = listener.Close() }()
	authenticator, err := callers.New(ctx, cfg.Auth, listener.Addr().String(), logger)
	if err != nil {
		return err
	}
	if o.pprof != "" {
		if err := serveProfiles(ctx, o.pprof); err != nil {
			return fmt.Errorf("--pprof: %w", err)
		}
	}
	// Deferred calls stop everything in the opposite order: nodes, connections, servers.
	servers, err := devserver.Start(ctx, devserver.Options{Data: o.data, TemporalPort: o.temporalPort, NATSPort: o.natsPort, Logger: logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Stop(context.WithoutCancel(ctx))) }()

	// A process that was killed leaves its file in the directory. It is removed first, so that the
	// file exists only while this process is ready.
	file := filepath.Join(o.data, "addresses.json")
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("addresses: %w", err)
	}
	connections, err := connect(servers, tel, logger)
	if err != nil {
		return err
	}
	defer connections.close()
	stop, err := startNodes(ctx, connections, servers, listener, authenticator, folder, set, hooks, cfg, o, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	where := addresses{API: "http://" + listener.Addr().String(), Temporal: servers.TemporalAddress(), Namespace: servers.Namespace(), NATS: servers.NATSURL()}
	if err := writeAddresses(file, where); err != nil {
		return err
	}
	defer func() { _ = os.Remove(file) }()
	ready = true
	announce(out, o, where, folder.Agents, cfg.Getenv)
	<-ctx.Done()
	fmt.Fprintln(out, "stopping …")
	return nil
}

// connections are the connections of both nodes. They share one Temporal client, because an eager
// workflow start requires a worker of the same client.
type connections struct {
	nats      *nats.Conn
	temporal  client.Client
	telemetry *telemetry.Telemetry
}

// connect connects to the embedded servers. The caller closes the connections before it stops the
// servers.
func connect(servers *devserver.Server, tel *telemetry.Telemetry, logger *slog.Logger) (*connections, error) {
	nc, err := servers.ConnectNATS(nats.Name("perdure dev"))
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	options := client.Options{
		HostPort: servers.TemporalAddress(), Namespace: servers.Namespace(),
		ConnectionOptions: client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}}, // the traffic stays on this machine
		DataConverter:     runs.DataConverter(), Logger: temporallog.NewStructuredLogger(logger),
	}
	tel.Instrument(&options)
	tc, err := client.Dial(options)
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("connect to Temporal: %w", err)
	}
	return &connections{nats: nc, temporal: tc, telemetry: tel}, nil
}

// close closes both connections.
func (c *connections) close() {
	c.temporal.Close()
	c.nats.Close()
}

// startNodes starts the worker and the API concurrently. It also fails the activities that the
// previous process of the data directory has left running, so that Temporal retries them at once:
// that process is dead, because this process has the lock of the directory. stop stops both nodes;
// if startNodes fails, it has stopped them itself.
func startNodes(ctx context.Context, c *connections, servers *devserver.Server, listener net.Listener, authenticator auth.Authenticator, folder *agents.Folder, set *toolset.Set, hooks *webhook.Sender, cfg *config.Config, o devOptions, logger *slog.Logger) (stop func() error, err error) {
	log, err := stream.Open(ctx, c.nats, stream.Options{})
	if err != nil {
		return nil, err
	}
	if err := checkNames(ctx, log, folder, o, logger); err != nil {
		return nil, err
	}
	snapshots := snapshot.NewStore(log) // shared, because both nodes use the same cache of snapshots
	prices, err := budget.LoadIf(cfg.Prices)
	if err != nil {
		return nil, err
	}
	var (
		w *workernode.Node
		a *apinode.Node
		g errgroup.Group
	)
	// The two nodes and FailOrphans do not depend on each other: a run that the API accepts before
	// the worker polls waits in its task queue.
	g.Go(func() (err error) {
		if o.noWorker {
			return nil
		}
		w, err = workernode.Start(ctx, workernode.Config{
			Alone: true, Snapshots: snapshots, Temporal: c.temporal, Models: models.FromEnv(models.Options{Getenv: cfg.Getenv, Silence: cfg.ModelSilence, Scripts: folder.Scripts, Secrets: cfg.Secrets(), FailFast: true}), Tools: set.Registry(),
			Budgets: workernode.Budgets{Prices: prices, TenantBudget: budget.Day{
				Amounts: budget.AmountsOf(cfg.TenantTokensPerDay, cfg.TenantCostPerDay),
				Soft:    budget.AmountsOf(cfg.TenantSoftTokensPerDay, cfg.TenantSoftCostPerDay),
			}},
			Queues: workernode.Queues{Tools: set.TaskQueues()}, Webhooks: hooks, WorkflowCache: cfg.WorkflowCache, ToolGrace: cfg.ToolGrace, Logger: logger,
		})
		return err
	})
	g.Go(func() (err error) {
		a, err = apinode.Start(ctx, apinode.Config{
			Listener: listener, Snapshots: snapshots, Temporal: c.temporal, Agents: folder.Agents, Known: folder.Names(), ForceAgents: cfg.ForceAgents, Origins: origins(cfg.Origins),
			Auth: authenticator, AdminRole: cfg.Auth.AdminRole,
			ParkAfter: cfg.ParkAfter, Strict: cfg.Strict, Sockets: cfg.MaxSockets, Streams: cfg.MaxStreams, Metrics: c.telemetry.Metrics(), Logger: logger,
			LinkKey: cfg.LinkKey, PublicURL: cfg.PublicURL,
		})
		return err
	})
	g.Go(func() error {
		_, err := devserver.FailOrphans(ctx, c.temporal, servers.Orphans())
		return err
	})
	err = g.Wait()
	stop = func() error {
		var g errgroup.Group
		if a != nil {
			g.Go(func() error { return a.Stop(context.WithoutCancel(ctx)) })
		}
		if w != nil {
			w.Stop(context.WithoutCancel(ctx))
		}
		return g.Wait()
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// checkNames refuses unknown names in definitions: names that neither the folder, nor the built-in
// tools, nor earlier publications, nor --known have. With --no-worker another worker may have them,
// so they are only logged.
func checkNames(ctx context.Context, log *stream.Log, folder *agents.Folder, o devOptions, logger *slog.Logger) error {
	c, err := catalog.Open(ctx, log)
	if err != nil {
		return err
	}
	published, err := c.Names(ctx)
	if err != nil {
		return err
	}
	wrong := folder.CheckNames(agents.BuiltIn().With(agents.Names{Agents: published, Others: o.known}))
	if wrong != nil && o.noWorker {
		logger.WarnContext(ctx, "the definitions refer to names that this process does not know", "names", wrong.Error())
		return nil
	}
	if wrong != nil {
		return fmt.Errorf("%w\nIf another worker knows a name, pass the name with --known", wrong)
	}
	return nil
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

// writeAddresses writes the file of addresses. It may be read by its owner only.
func writeAddresses(file string, a addresses) error {
	body, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(body, '\n'), 0o600); err != nil {
		return fmt.Errorf("addresses: %w", err)
	}
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
