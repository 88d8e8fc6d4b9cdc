package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/process/version"
	"github.com/perdure/perdure/stream"
)

// Process is a program that is configured here.
type Process string

// The processes. Their values are the names of the binaries, or the command.
const (
	API    Process = "api"
	Worker Process = "worker"
	Dev    Process = "perdure dev" // has flags of its own, and servers of its own
)

// ErrHelp is returned by Load when it was asked for help or for the version, and has printed it.
var ErrHelp = pflag.ErrHelp

// Config is what a process was told. What its kind of process does not read has its zero value.
type Config struct {
	// Addr is where the api listens, host:port; port 0 = any free one.
	Addr string
	// Agents is the folder of definitions: agents for the api, tools and MCP servers for the worker.
	// Empty = none.
	Agents string
	// AllowPrivateHosts lets the worker's tools reach loopback and private networks.
	AllowPrivateHosts bool
	// ForceAgents publishes them in place of newer ones that clients have put.
	ForceAgents bool
	// Origins are those that browsers may call the api from; one "*" = all, empty = none.
	Origins []string
	// Auth says how the api finds out who calls.
	Auth Auth
	// ParkAfter is how long a run waits for a person before it is parked.
	ParkAfter time.Duration
	// Strict has the api check every event that it sends.
	Strict bool
	// MaxSockets and MaxStreams bound what is open on the api at a time.
	MaxSockets, MaxStreams int
	// MetricsAddr is where the worker serves /metrics, host:port. Empty = nowhere.
	MetricsAddr string
	// WorkflowCache bounds how many workflows the worker keeps in memory.
	WorkflowCache int
	// ModelSilence is how long a model may say nothing.
	ModelSilence time.Duration
	// Deployment and BuildID version the worker: both set or both empty.
	Deployment, BuildID string
	// Promote makes that version the current one if it never was.
	Promote bool
	// StopTimeout is how long calls may take to end when the worker stops, ToolGrace how long a run waits
	// for a worker that has its tools.
	StopTimeout, ToolGrace time.Duration

	// TaskQueues are those of tools that the worker serves, ToolsOnly says that it serves no other.
	TaskQueues []string
	ToolsOnly  bool

	// LinkKey signs links; empty = the one that apis share. PublicURL is where they lead, without a slash at
	// its end; empty = where the request came to.
	LinkKey   []byte
	PublicURL string
	// Webhooks is the file of the worker's webhooks. Empty = none.
	Webhooks string
	// Prices is the file of what models cost. Empty = none.
	Prices string
	// TenantTokensPerDay and TenantCostPerDay are what a tenant may use; 0 = as much as it likes. The soft ones are what it
	// uses before people are asked; 0 = they are not.
	TenantTokensPerDay, TenantSoftTokensPerDay int64
	TenantCostPerDay, TenantSoftCostPerDay     agents.Money

	// Stream says which log to use, and how to create it if it is not there.
	Stream stream.Options
	NATS   NATS
	// Temporal is ready to dial, but for the data converter and the logger.
	Temporal client.Options
	// ConnectTimeout bounds how long the servers may take to answer for the first time.
	ConnectTimeout time.Duration

	LogLevel  slog.Level
	LogFormat string // "json" or "text"

	// Unknown lists variables that begin with PERDURE_ and mean nothing: misspelled, most likely.
	Unknown []string

	env environment
}

// NATS says where the servers are and who we are. At most one way of authentication is meant to be
// set; the servers decide.
type NATS struct {
	URL            string // one or more, separated by commas
	Credentials    string // file
	User, Password string
	NKey           string // file of the seed
	Cert, Key      string // files, for mutual TLS
	CA             string // file
}

// VariableError says that a variable has a value that it cannot have.
type VariableError struct {
	Name string
	Err  error
}

func (e *VariableError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns what is wrong with the value.
func (e *VariableError) Unwrap() error { return e.Err }

// Load reads the configuration of a process from its arguments (without the program's name) and its
// environment (as of os.Environ). Help goes to out.
//
// Errors: ErrHelp; *VariableError for each bad variable, joined; else what is wrong with a flag.
func Load(p Process, args, environ []string, out io.Writer) (*Config, error) {
	cfg := &Config{env: parseEnviron(environ)}
	flags := pflag.NewFlagSet(string(p), pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() { writeUsage(out, p) }
	showVersion := flags.Bool("version", false, "show the version of this program, and end")
	var wrong []error
	variableOf := map[string]string{}
	for _, v := range Variables(p) {
		if v.value == nil {
			continue
		}
		value := v.value(cfg)
		if err := v.setUp(value, cfg.env); err != nil {
			wrong = append(wrong, err)
		}
		if name := v.Flag(); name != "" {
			variableOf[name] = v.Name
			flags.AddFlag(&pflag.Flag{Name: name, Usage: v.Meaning, Value: value, DefValue: v.Default})
		}
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if *showVersion {
		_, _ = io.WriteString(out, version.Read().Text(string(p))) // as for help: nobody is left to tell
		return nil, ErrHelp
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("%s takes no arguments, only flags: %q", p, flags.Arg(0))
	}
	// Libraries read the environment; a flag has to win there as well.
	flags.Visit(func(f *pflag.Flag) { cfg.env[variableOf[f.Name]] = f.Value.String() })
	cfg.Unknown = cfg.env.unknown()
	if p != Dev {
		wrong = append(wrong, cfg.versioning(), cfg.temporal())
	}
	if cfg.ToolsOnly && len(cfg.TaskQueues) == 0 {
		wrong = append(wrong, &VariableError{Name: "PERDURE_TASK_QUEUES", Err: errors.New("must be set when PERDURE_TOOLS_ONLY is")})
	}
	wrong = append(wrong, cfg.budgets(), cfg.Auth.check())
	if p == API {
		wrong = append(wrong, cfg.Auth.CheckAddr(cfg.Addr))
	}
	return cfg, errors.Join(wrong...)
}

// setUp gives a value its default, then what the environment says.
func (v Variable) setUp(value pflag.Value, env environment) error {
	for _, s := range []string{v.Default, env[v.Name]} {
		if s == "" {
			continue
		}
		if err := value.Set(s); err != nil {
			return &VariableError{Name: v.Name, Err: err}
		}
	}
	return nil
}

// budgets refuses soft ones that nobody would be asked about.
func (c *Config) budgets() error {
	below := func(name, hard string) error {
		return &VariableError{Name: name, Err: fmt.Errorf("must be below %s", hard)}
	}
	switch {
	case c.TenantTokensPerDay > 0 && c.TenantSoftTokensPerDay >= c.TenantTokensPerDay:
		return below("PERDURE_BUDGET_TENANT_SOFT_TOKENS_PER_DAY", "PERDURE_BUDGET_TENANT_TOKENS_PER_DAY")
	case c.TenantCostPerDay > 0 && c.TenantSoftCostPerDay >= c.TenantCostPerDay:
		return below("PERDURE_BUDGET_TENANT_SOFT_COST_PER_DAY", "PERDURE_BUDGET_TENANT_COST_PER_DAY")
	}
	return nil
}

func (c *Config) versioning() error {
	switch {
	case c.Deployment == "" && c.BuildID != "":
		return &VariableError{Name: "PERDURE_DEPLOYMENT", Err: errors.New("must be set when PERDURE_BUILD_ID is")}
	case c.Deployment != "" && c.BuildID == "":
		return &VariableError{Name: "PERDURE_BUILD_ID", Err: errors.New("must be set when PERDURE_DEPLOYMENT is")}
	case c.Deployment == "" && c.Promote:
		return &VariableError{Name: "PERDURE_DEPLOYMENT", Err: errors.New("must be set when PERDURE_PROMOTE is")}
	}
	return nil
}

func (c *Config) temporal() (err error) {
	c.Temporal, err = envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{EnvLookup: c.env})
	if err != nil {
		return &VariableError{Name: "TEMPORAL_*", Err: err}
	}
	return nil
}

// Getenv returns a variable as libraries have to see it: flags win. It may be called concurrently.
func (c *Config) Getenv(name string) string { return c.env[name] }

// Secrets are the values of the variables that hold secrets, the longest first, so that none is found within another.
func (c *Config) Secrets() []string {
	var values []string
	for name, value := range c.env {
		if isSecret(name) {
			values = append(values, value)
		}
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return values
}

// LogHandler writes to out what LogLevel lets through, as LogFormat says.
func (c *Config) LogHandler(out io.Writer) slog.Handler {
	o := &slog.HandlerOptions{Level: c.LogLevel, ReplaceAttr: readable}
	if c.LogFormat == "text" {
		return slog.NewTextHandler(out, o)
	}
	return slog.NewJSONHandler(out, o)
}

// readable writes durations as text, such as 1.5s: the JSON handler alone would write nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// environment is what the process was started with. It implements envconfig.EnvLookup.
type environment map[string]string

func parseEnviron(environ []string) environment {
	env := make(environment, len(environ))
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok && value != "" {
			env[name] = value
		}
	}
	return env
}

// LookupEnv is os.LookupEnv.
func (e environment) LookupEnv(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// Environ is os.Environ.
func (e environment) Environ() []string {
	pairs := make([]string, 0, len(e))
	for name, value := range e {
		pairs = append(pairs, name+"="+value)
	}
	return pairs
}

func (e environment) unknown() []string {
	var names []string
	for name := range e {
		if strings.HasPrefix(name, "PERDURE_") && !Known(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
