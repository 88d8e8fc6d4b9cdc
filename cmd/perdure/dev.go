package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/console"
	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/internal/process/memory"
	"github.com/perdure/perdure/internal/process/telemetry"
)

// workflowCache is the default of PERDURE_WORKFLOW_CACHE for "perdure dev", which has the memory of
// four servers and a worker in one process.
const workflowCache = 200

// gcPercent is the default of GOGC for "perdure dev": how much the heap grows between two garbage
// collections, in percent of what is live. docs/internals/performance.md has what other values cost.
const gcPercent = 60

// devCommand returns the command "perdure dev".
func devCommand(environ []string) *cobra.Command {
	var o devOptions
	level := "warn"
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run Temporal, NATS, worker and API in one process",
		Long: `Run a Temporal server on SQLite, a NATS server with JetStream, a worker and the API in one process, with all data in
one directory. After a crash, start it again with the same directory: every run continues.

While it runs, it watches the directory of definitions, and publishes each agent that changes.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.logLevel.UnmarshalText([]byte(level)); err != nil {
				return fmt.Errorf("--log-level: %w", err)
			}
			o.addrGiven = cmd.Flags().Changed("addr")
			o.privateGiven = cmd.Flags().Changed("allow-private-hosts")
			return runDev(cmd.Context(), o, environ, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.addr, "addr", "127.0.0.1:8080", "address at which the API listens, instead of PERDURE_ADDR; port 0 is any free port")
	f.StringVar(&o.data, "data", ".perdure", "data directory")
	f.StringVar(&o.agents, "agents", "agents", "directory of agents, tools, MCP servers and scripts")
	f.BoolVar(&o.agentsForce, "agents-force", false, "publish the directory's definitions even if newer ones were published over HTTP")
	f.IntVar(&o.temporalPort, "temporal-port", 7233, "port of Temporal's frontend on 127.0.0.1; 0 is any free port")
	f.IntVar(&o.temporalUIPort, "temporal-ui-port", 8233, "port of Temporal's UI on 127.0.0.1; 0 is any free port, -1 runs without the UI")
	f.IntVar(&o.natsPort, "nats-port", 4222, "port of NATS on 127.0.0.1; 0 is any free port")
	f.BoolVar(&o.allowPrivateHosts, "allow-private-hosts", true, "HTTP tools, MCP servers and webhooks may use addresses on loopback and private networks")
	f.BoolVar(&o.noWorker, "no-worker", false, "run without a worker: another process runs the worker (docs/guides/programs.md)")
	f.StringSliceVar(&o.known, "known", nil, "names, or patterns with *, that another worker knows; may be repeated")
	f.StringVar(&o.pprof, "pprof", "", "address on loopback that serves CPU profiles")
	_ = f.MarkHidden("pprof")
	f.StringVar(&level, "log-level", level, "lowest level that is logged: debug, info, warn or error")
	return cmd
}

// runDev starts everything in the order of dependencies, waits until ctx ends, and stops everything
// in the opposite order. If ctx ends during the start, it stops what has started and returns nil.
// out is for the user, errOut for the log.
func runDev(ctx context.Context, o devOptions, environ []string, out, errOut io.Writer) (err error) {
	cfg, err := config.Load(config.Dev, nil, environ, out)
	if err != nil {
		return err
	}
	if !o.addrGiven {
		o.addr = cfg.Addr
	}
	cfg.ForceAgents = cfg.ForceAgents || o.agentsForce
	if cfg.Getenv("PERDURE_WORKFLOW_CACHE") == "" {
		cfg.WorkflowCache = workflowCache
	}
	if cfg.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	logger := telemetry.NewLogger(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: o.logLevel}))
	if len(cfg.Unknown) > 0 {
		logger.WarnContext(ctx, "unknown PERDURE_ variables are ignored", "variables", cfg.Unknown)
	}
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
	memory.ReleaseText(ctx, logger)
	announce(out, o, p.addresses(), p.folder.Agents, cfg.Console, cfg.Getenv)
	if p.problem != "" {
		fmt.Fprintf(out, "%s.\n", p.problem)
	}
	p.watch(ctx, out)
	<-ctx.Done()
	fmt.Fprintln(out, "stopping …")
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

// announce prints the addresses, and an example request to the first agent that needs no API key.
func announce(out io.Writer, o devOptions, a addresses, definitions []*agents.Definition, hasConsole bool, getenv func(string) string) {
	names := make([]string, len(definitions))
	var first *agents.Definition
	for i, d := range definitions {
		names[i] = d.Name
		if provider, _ := d.ModelProvider(); provider == "scripted" && first == nil {
			first = d
		}
	}
	if first == nil && len(definitions) > 0 {
		first = definitions[0]
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	consoleLine := ""
	if hasConsole {
		consoleLine = fmt.Sprintf("  console    %s%s/\n", a.API, console.Path)
	}
	ui := ""
	if a.TemporalUI != "" {
		ui = "\n  workflows  " + a.TemporalUI + "   (Temporal's UI)"
	}
	fmt.Fprintf(out, `
Perdure is ready.

%s  api        %s%s
  agents     %s   (from %s)
  data       %s
  Temporal   %s, namespace %s
  NATS       %s
  models     %s

`, consoleLine, a.API, ui, strings.Join(names, ", "), o.agents, o.data, a.Temporal, a.Namespace, a.NATS, providers(getenv))
	if first == nil {
		return
	}
	fmt.Fprintf(out, `Try it:

  curl -N %s/v1/agents/%s/runs -H 'Content-Type: application/json' -d '
    {"threadId": "thread-%d", "runId": "run-1", "messages":
      [{"id": "m1", "role": "user", "content": "%s"}]}'

`, a.API, first.Name, time.Now().Unix(), prompt(first))
}

// prompt returns a message that an agent may be able to answer.
func prompt(d *agents.Definition) string {
	if slices.Contains(d.Tools, "calculate") && slices.Contains(d.Tools, "current_time") {
		return "What is 12*7, and what time is it?"
	}
	return "What can you do?"
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
