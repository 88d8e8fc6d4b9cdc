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
	"github.com/perdure/perdure/internal/auth/principals"
	"github.com/perdure/perdure/internal/control/admission"
	"github.com/perdure/perdure/internal/process/version"
	"github.com/perdure/perdure/stream"
)

// ErrHelp is returned by Load after it has printed the help or the version that the arguments
// request. The process then ends with status 0.
var ErrHelp = pflag.ErrHelp

// Config is the configuration of a process. Fields that the process does not read have their zero
// values. The program completes Temporal after Load. From then on the Config is not changed, and it
// is safe for concurrent use.
type Config struct {
	APIOptions
	WorkerOptions
	TenantBudget
	Connections

	// Policies decides what callers may do.
	Policies Policies
	// Principals is the file of approvers and services; "" = there are none.
	Principals string

	// EventSources is the file of the sources of events; "" = there are none.
	EventSources string

	// Agents is the folder of definitions: agents for the API, tools and MCP servers for the
	// worker. Empty = none.
	Agents string
	// ForceAgents publishes the definitions of the folder even if newer ones were published over
	// HTTP.
	ForceAgents bool

	// PublicURL is the base of links, and the issuer of assertions, without a slash at its end; "" =
	// the host of the request, and no assertions.
	PublicURL string
	// Files is the URL of the bucket with the bytes of files; "" = they are in NATS.
	Files string
	// MetricsAddr is the address at which the process serves metrics and probes, host:port. Empty =
	// no metrics.
	MetricsAddr string

	LogLevel  slog.Level
	LogFormat string // "json" or "text"

	// Unknown lists the variables that begin with PERDURE_ and that no process reads: they are
	// probably misspelled.
	Unknown []string

	// env is the environment after flags have overridden it.
	env environment
}

// OpenPrincipals opens the file of principals. The caller must close them. Errors: *VariableError.
func (c *Config) OpenPrincipals(logger *slog.Logger) (*principals.Principals, error) {
	opened, err := principals.Open(c.Principals, logger)
	if err != nil {
		return nil, &VariableError{Name: "PERDURE_PRINCIPALS", Err: err}
	}
	return opened, nil
}

// APIOptions are the options of an API node.
type APIOptions struct {
	// Addr is the address of the API, host:port; port 0 = any free one.
	Addr string
	// TLS is how the API serves TLS; without a certificate it serves plain HTTP.
	TLS TLS
	// Auth is how the API authenticates callers.
	Auth Auth
	// Origins are the origins whose pages may call the API; "*" alone = all, empty = none.
	Origins []string
	// MaxSockets and MaxStreams bound the open WebSockets and streams of the API.
	MaxSockets, MaxStreams int
	// Quotas is the file with the rates and quotas of tenants. Empty = the defaults.
	Quotas string
	// ParkAfter is how long a run waits for interrupts before it is parked.
	ParkAfter time.Duration
	// Retention is the file with the times to live. Empty = the defaults.
	Retention string
	// FilesMaxSize bounds a file, in bytes. FilesScanner is the address of clamd; "" = files are not
	// scanned.
	FilesMaxSize int64
	FilesScanner string
	// Strict makes the API check every event before it sends the event.
	Strict bool
	// Console serves the console.
	Console bool
	// TemporalUI is the base of URLs in Temporal's UI, without a slash at its end, and TraceURL the
	// template of URLs of traces; "" = there are none.
	TemporalUI, TraceURL string
	// LinkKey signs links; empty = the key that all API nodes share in NATS.
	LinkKey []byte
}

// WorkerOptions are the options of a worker.
type WorkerOptions struct {
	// TaskQueues are the task queues of tools that the worker serves. With ToolsOnly it serves no
	// other queue.
	TaskQueues []string
	ToolsOnly  bool
	// Deployment and BuildID are the worker's version in Temporal: both set or both empty.
	Deployment, BuildID string
	// Promote makes that version current if it never was.
	Promote bool
	// StopTimeout is how long calls may take after the worker is asked to stop. ToolGrace is how
	// long a run waits for a worker that has its tools.
	StopTimeout, ToolGrace time.Duration
	// ModelSilence is how long a model may send nothing before the call is repeated, and how long a
	// remote agent may.
	ModelSilence time.Duration
	// ModelLimits bounds the calls of model providers.
	ModelLimits admission.Limits
	// WorkflowCache bounds the workflows in the worker's memory.
	WorkflowCache int
	// AllowPrivateHosts permits tools to reach loopback and private networks.
	AllowPrivateHosts bool
	// Webhooks is the file of webhooks. Empty = none.
	Webhooks string
	// Prices is the file of prices. Empty = none.
	Prices string
}

// TenantBudget is the budget of a tenant's day, for tenants without a budget of their own in the
// file of prices. TenantTokensPerDay and TenantCostPerDay are hard; 0 = unlimited. Beyond the soft
// amounts, runs ask approvers; 0 = never.
type TenantBudget struct {
	TenantTokensPerDay, TenantSoftTokensPerDay int64
	TenantCostPerDay, TenantSoftCostPerDay     agents.Money
}

// Connections are the servers that a process uses.
type Connections struct {
	// Stream configures the log. Its size and replicas apply only when the stream is created.
	Stream stream.Options
	NATS   NATS
	// Temporal has the options of the client, except the data converter and the logger.
	Temporal client.Options
	// ConnectTimeout bounds the wait for the first answers of the servers.
	ConnectTimeout time.Duration
}

// NATS is the address of the servers, and the credentials. At most one kind of credentials should
// be set; the servers decide which one they accept.
type NATS struct {
	URL            string // one or more, separated by commas
	Credentials    string // file
	User, Password string
	NKey           string // file of the seed
	Cert, Key      string // files, for mutual TLS
	CA             string // file
}

// Load reads the configuration of a process from its arguments (without the program's name) and its
// environment (in the form of os.Environ). Help and version are written to out.
//
// Errors: ErrHelp; an error about a flag or an argument; otherwise a *VariableError for each
// invalid variable, joined.
func Load(p Process, args, environ []string, out io.Writer) (*Config, error) {
	cfg := &Config{env: parseEnviron(environ)}
	flags := pflag.NewFlagSet(string(p), pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() { writeUsage(out, p) }
	showVersion := flags.Bool("version", false, "show the version of this program, and exit")
	var problems []error
	variableOf := map[string]string{}
	for _, v := range Variables(p) {
		if v.value == nil {
			continue
		}
		value := v.value(cfg)
		if err := v.setUp(value, cfg.env); err != nil {
			problems = append(problems, err)
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
		_, _ = io.WriteString(out, version.Read().Text(string(p))) // an error could not be shown either
		return nil, ErrHelp
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("%s takes no arguments, only flags: %q", p, flags.Arg(0))
	}
	// Libraries read cfg.env through Getenv and LookupEnv, so flags override it there.
	flags.Visit(func(f *pflag.Flag) { cfg.env[variableOf[f.Name]] = f.Value.String() })
	cfg.Unknown = cfg.env.unknown()
	if p == Dev {
		problems = append(problems, cfg.env.checkPlain())
	} else {
		problems = append(problems, cfg.checkVersion(), cfg.loadTemporal())
	}
	if cfg.ToolsOnly && len(cfg.TaskQueues) == 0 {
		problems = append(problems, &VariableError{Name: "PERDURE_TASK_QUEUES", Err: errors.New("must be set when PERDURE_TOOLS_ONLY is")})
	}
	cfg.Auth.ProxySecrets, cfg.Auth.ProxyCertificates = proxySecretsOf(cfg.env), cfg.TLS.namesClients()
	cfg.Auth.Sessions.ClientSecret = clientSecretOf(cfg.env)
	problems = append(problems, cfg.checkBudgets(), cfg.TLS.check(), cfg.Auth.check(), cfg.Auth.Sessions.check(cfg.Auth.Mode, cfg.PublicURL))
	if cfg.Auth.Mode == AuthHeader && slices.Contains(cfg.Origins, "*") {
		problems = append(problems, &VariableError{Name: "PERDURE_CORS_ORIGINS", Err: errors.New(
			"must not be * when PERDURE_AUTH is header: the proxy lets every page act as the person who has signed in. List the origins of your pages")})
	}
	if p == API && cfg.Auth.Sessions.ClientID != "" && cfg.PublicURL == "" {
		problems = append(problems, &VariableError{Name: publicURLName, Err: fmt.Errorf("must be set when %s is", clientIDName)})
	}
	if p == Worker && cfg.AssertionKeys() != "" && cfg.PublicURL == "" {
		problems = append(problems, &VariableError{Name: publicURLName, Err: fmt.Errorf("must be set when %s is", assertionKeys)})
	}
	problems = append(problems, cfg.env.checkSecrets(p)...)
	if p == API {
		problems = append(problems, cfg.Auth.CheckAddr(cfg.Addr))
	}
	return cfg, errors.Join(problems...)
}

// checkBudgets refuses a soft budget that is not below the hard one: runs would end before
// approvers are asked.
func (c *Config) checkBudgets() error {
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

// checkVersion refuses an incomplete worker version.
func (c *Config) checkVersion() error {
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

// checkPlain refuses settings of TLS for a process that serves plain HTTP only: the user would take
// its connections for encrypted.
func (e environment) checkPlain() error {
	var problems []error
	for _, v := range Variables(API) {
		if strings.HasPrefix(v.Name, "PERDURE_TLS_") && e.get(v.Name) != "" {
			problems = append(problems, &VariableError{Name: v.Name, Err: fmt.Errorf("must not be set for %s, which serves plain HTTP: use api, or a proxy that ends TLS", Dev)})
		}
	}
	return errors.Join(problems...)
}

// loadTemporal reads the options of the Temporal client with Temporal's own reader, from the
// environment and Temporal's configuration file.
func (c *Config) loadTemporal() (err error) {
	c.Temporal, err = envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{EnvLookup: c.env})
	if err != nil {
		return &VariableError{Name: "TEMPORAL_*", Err: err}
	}
	return nil
}

// Getenv returns a variable for a library, after flags have overridden it; "" = it is not set. It
// reads the file of a secret at each call, so callers that keep no copy follow a rotation. It is
// safe for concurrent use.
func (c *Config) Getenv(name string) string { return c.env.get(name) }

// ConsoleURL returns the public address of the console, without a slash at its end; "" = there is no
// console, or its address is unknown.
func (c *Config) ConsoleURL() string {
	if !c.Console || c.PublicURL == "" {
		return ""
	}
	return c.PublicURL + "/console" // console.Path, whose package has the files of the console
}

// AssertionKeys returns the private keys that sign assertions, in PEM; "" = there are none. Like
// Getenv, it reads their file at each call.
func (c *Config) AssertionKeys() string { return c.env.get(assertionKeys) }

// EncryptionKeys returns the URLs of the operator's keys, separated by white space; "" = nothing is
// encrypted.
func (c *Config) EncryptionKeys() string { return c.env.get(EncryptionKeysName) }

// Secrets returns the present values of variables that have secrets, for removal from messages.
// Longer ones come first: a shorter one may be a part of a longer one.
func (c *Config) Secrets() []string {
	var values []string
	names, _ := c.env.secretNames() // a folder that cannot be read has no secrets in use
	for _, name := range names {
		if value := c.env.get(name); value != "" {
			values = append(values, value)
		}
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return values
}

// LogHandler returns a handler that writes lines of LogLevel and above to out, in LogFormat.
func (c *Config) LogHandler(out io.Writer) slog.Handler {
	o := &slog.HandlerOptions{Level: c.LogLevel, ReplaceAttr: readable}
	if c.LogFormat == "text" {
		return slog.NewTextHandler(out, o)
	}
	return slog.NewJSONHandler(out, o)
}

// readable writes durations as text, such as 1.5s. The JSON handler would write nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// environment has the variables of the process without those that are empty. It implements
// envconfig.EnvLookup.
type environment map[string]string

// parseEnviron parses the form of os.Environ, and drops empty values.
func parseEnviron(environ []string) environment {
	env := make(environment, len(environ))
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok && value != "" {
			env[name] = value
		}
	}
	return env
}

// LookupEnv is like os.LookupEnv.
func (e environment) LookupEnv(name string) (string, bool) {
	value := e.get(name)
	return value, value != ""
}

// Environ is like os.Environ.
func (e environment) Environ() []string {
	pairs := make([]string, 0, len(e))
	for name, value := range e {
		pairs = append(pairs, name+"="+value)
	}
	return pairs
}

// unknown returns the variables with the prefix PERDURE_ that no process reads, sorted.
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
