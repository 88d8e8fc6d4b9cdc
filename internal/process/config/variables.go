package config

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// This file has the table of all variables. Load, --help and docs/reference/configuration.md derive
// from it, so a new variable is an entry here and a function in bind.go.

// Variable is an environment variable that a process reads.
type Variable struct {
	// Name is the name of the variable. With "*" at its end it means all variables with that
	// prefix.
	Name string
	// Default is the value if the variable is not set.
	Default string
	// Meaning is one line for help and documentation: the effect, the unit and special values.
	Meaning string
	// For lists the processes that read it.
	For []Process

	// value returns the pflag.Value that stores the variable in a Config; nil = only a library
	// reads it.
	value func(*Config) pflag.Value
	// secret variables have no flag, and their values are removed from error messages.
	secret bool
}

// Flag returns the name of the flag that mirrors the variable, without dashes; "" = there is none.
func (v Variable) Flag() string {
	if v.secret || v.value == nil {
		return ""
	}
	name := strings.TrimPrefix(v.Name, "PERDURE_")
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

// Variables returns the variables that a process reads, in the order of the documentation.
func Variables(p Process) []Variable {
	var list []Variable
	for _, v := range variables {
		if slices.Contains(v.For, p) {
			list = append(list, v)
		}
	}
	return list
}

// isSecret reports whether a variable has a secret.
func isSecret(name string) bool {
	return slices.ContainsFunc(variables, func(v Variable) bool { return v.secret && v.matches(name) })
}

// matches reports whether v describes the variable with a name.
func (v Variable) matches(name string) bool {
	prefix, many := strings.CutSuffix(v.Name, "*")
	return v.Name == name || many && strings.HasPrefix(name, prefix)
}

// Known reports whether a process or a command reads the variable.
func Known(name string) bool {
	return slices.Contains(ofCommands, name) || slices.ContainsFunc(variables, func(v Variable) bool { return v.matches(name) })
}

// Sets of processes for Variable.For.
var (
	all        = []Process{API, Worker}
	withDev    = []Process{API, Worker, Dev}
	apiOnly    = []Process{API}
	apiDev     = []Process{API, Dev}
	workerOnly = []Process{Worker}
	workerDev  = []Process{Worker, Dev}
)

// ofCommands are variables of the commands of perdure that use the API. A shell may have them set
// when it starts a process, so they are not reported as unknown.
var ofCommands = []string{"PERDURE_URL", "PERDURE_TOKEN", "PERDURE_SUBJECT", "PERDURE_ROLES"}

var variables = []Variable{
	{Name: "PERDURE_ADDR", Default: "127.0.0.1:8080", For: apiOnly, value: addr,
		Meaning: "address of the API, host:port; port 0 = any free port; 0.0.0.0 = reachable from the network"},
	{Name: "PERDURE_AGENTS", For: all, value: agentsDir,
		Meaning: "folder of definitions: the API publishes its agents at start, the worker offers its tools and MCP servers; not set = none"},
	{Name: "PERDURE_AGENTS_FORCE", For: apiDev, value: agentsForce,
		Meaning: "true = publish that folder's definitions also if newer ones were published over HTTP"},
	{Name: "PERDURE_CORS_ORIGINS", For: apiDev, value: origins,
		Meaning: "origins whose pages may call the API, separated by commas, each with at most one *; * alone = all; not set = none. perdure dev adds those of this machine"},
	{Name: "PERDURE_AUTH", Default: AuthNone, For: apiDev, value: authMode,
		Meaning: "mode of authentication: none (accepts every caller; only on loopback), header (a proxy authenticates callers), oidc (tokens) or apikey (a file of keys)"},
	{Name: "PERDURE_AUTH_ALLOW_ANONYMOUS", Default: "false", For: apiDev, value: allowAnonymous,
		Meaning: "true = permit PERDURE_AUTH=none on addresses that other machines can reach: every caller may then use everything"},
	{Name: "PERDURE_ADMIN_ROLE", Default: "admin", For: apiDev, value: adminRole,
		Meaning: "role that may publish agents, which all tenants share; with PERDURE_AUTH=none every caller has it"},
	{Name: "PERDURE_AUTH_SUBJECT_HEADER", Default: "X-Forwarded-User", For: apiDev, value: subjectHeader,
		Meaning: "header with the caller's subject; modes header and none"},
	{Name: "PERDURE_AUTH_ROLES_HEADER", Default: "X-Forwarded-Groups", For: apiDev, value: rolesHeader,
		Meaning: "header with the caller's roles, separated by commas; modes header and none"},
	{Name: "PERDURE_AUTH_TENANT_HEADER", For: apiDev, value: tenantHeader,
		Meaning: "header with the caller's tenant; mode header; not set = every caller has the tenant default"},
	{Name: "PERDURE_AUTH_PROXIES", Default: "127.0.0.0/8,::1/128", For: apiDev, value: authProxies,
		Meaning: "networks of the proxy, separated by commas; mode header refuses requests from others"},
	{Name: "PERDURE_AUTH_KEYS", For: apiDev, value: authKeys,
		Meaning: "file of keys, YAML or JSON, read at start; mode apikey"},
	{Name: "PERDURE_OIDC_ISSUER", For: apiDev, value: oidcIssuer,
		Meaning: "URL of the OpenID provider whose tokens are accepted, as in their claim iss"},
	{Name: "PERDURE_OIDC_AUDIENCE", For: apiDev, value: oidcAudience,
		Meaning: "audiences, separated by commas; a token must have one of them"},
	{Name: "PERDURE_OIDC_SUBJECT_CLAIM", Default: "sub", For: apiDev, value: subjectClaim,
		Meaning: "claim with the caller's subject; dots lead into objects"},
	{Name: "PERDURE_OIDC_ROLES_CLAIM", Default: "roles", For: apiDev, value: rolesClaim,
		Meaning: "claim with the caller's roles, such as realm_access.roles: a list, or one text of words"},
	{Name: "PERDURE_OIDC_TENANT_CLAIM", For: apiDev, value: tenantClaim,
		Meaning: "claim with the caller's tenant; not set = every caller has the tenant default"},
	{Name: "PERDURE_PARK_AFTER", Default: "10m", For: apiDev, value: parkAfter,
		Meaning: "how long a waiting run stays in its workflow, on its worker version, before it is parked in a workflow that any version can run"},
	{Name: "PERDURE_STRICT", For: apiDev, value: strict,
		Meaning: "true = check every event, and end a stream before one that AG-UI forbids, with an error in the log; for tests"},
	{Name: "PERDURE_MAX_SOCKETS", Default: "10000", For: apiDev, value: maxSockets,
		Meaning: "most WebSockets of the process; more are refused with 503"},
	{Name: "PERDURE_MAX_STREAMS", Default: "20000", For: apiDev, value: maxStreams,
		Meaning: "most concurrent event streams, over HTTP and WebSockets, and answers to GET requests of the process; more are refused with 503"},
	{Name: "PERDURE_PUBLIC_URL", For: apiDev, value: publicURL,
		Meaning: "base URL of links that decide, such as https://agents.example; not set = the host of the request that creates the link"},
	{Name: "PERDURE_LINK_KEY", For: apiDev, value: linkKey, secret: true,
		Meaning: "key that signs links, at least 32 bytes, the same for all APIs; not set = the first API stores one in NATS. Another key invalidates all links"},
	{Name: "PERDURE_METRICS_ADDR", For: workerOnly, value: metricsAddr,
		Meaning: "address at which the worker serves /metrics, host:port; not set = not served (the API serves /metrics at its own address)"},
	{Name: "PERDURE_ALLOW_PRIVATE_HOSTS", Default: "false", For: workerOnly, value: allowPrivateHosts,
		Meaning: "true = HTTP tools and MCP servers may be on loopback and private networks; in perdure dev the default is true"},
	{Name: "PERDURE_WEBHOOKS", For: workerDev, value: webhooks,
		Meaning: "YAML file of webhooks for changes of approvals, the same for all workers; not set = none"},
	{Name: "PERDURE_PRICES", For: workerDev, value: prices,
		Meaning: "YAML file of prices and of tenants' budgets, the same for all workers; not set = no model has a price"},
	{Name: "PERDURE_BUDGET_TENANT_TOKENS_PER_DAY", For: workerDev, value: tenantTokens,
		Meaning: "most tokens of a tenant in a day, UTC, unless the file has a budget for the tenant; not set = unlimited"},
	{Name: "PERDURE_BUDGET_TENANT_COST_PER_DAY", For: workerDev, value: tenantCost,
		Meaning: "highest cost of a tenant in a day, UTC, in the currency of the prices, such as 25 or 0.5; models without a price are then not called"},
	{Name: "PERDURE_BUDGET_TENANT_SOFT_TOKENS_PER_DAY", For: workerDev, value: softTenantTokens,
		Meaning: "tokens of a tenant in a day beyond which each run asks for an approval to continue; less than the limit above; not set = never"},
	{Name: "PERDURE_BUDGET_TENANT_SOFT_COST_PER_DAY", For: workerDev, value: softTenantCost,
		Meaning: "cost of a tenant in a day beyond which each run asks for an approval to continue; not set = never"},
	{Name: "PERDURE_SECRET_*", For: workerDev, secret: true,
		Meaning: "secrets that tools, MCP servers and webhooks name: ${secret:SHOP_TOKEN} is PERDURE_SECRET_SHOP_TOKEN"},
	{Name: "PERDURE_WORKFLOW_CACHE", Default: "1000", For: workerDev, value: workflowCache,
		Meaning: "most workflows in memory; another one is replayed when it continues"},
	{Name: "PERDURE_MODEL_SILENCE", Default: "5m", For: workerDev, value: modelSilence,
		Meaning: "longest silence of a model, before the first chunk or between two; then the call is made again"},
	{Name: "PERDURE_DEPLOYMENT", For: workerOnly, value: deployment,
		Meaning: "Temporal worker deployment of the worker; not set = not versioned"},
	{Name: "PERDURE_BUILD_ID", For: workerOnly, value: buildID,
		Meaning: "version of the worker in its deployment; a turn stays on the version on which it began"},
	{Name: "PERDURE_PROMOTE", For: workerOnly, value: promote,
		Meaning: "true = the first worker of this version makes it current, unless it ever was current or ramping"},
	{Name: "PERDURE_STOP_TIMEOUT", Default: "3s", For: workerOnly, value: stopTimeout,
		Meaning: "how long model and tool calls may take when the worker stops; another worker repeats interrupted calls"},
	{Name: "PERDURE_TOOL_GRACE", Default: "1m", For: workerDev, value: toolGrace,
		Meaning: "how long a run waits for a worker that has its agent's tools, before it fails with tool_unavailable"},
	{Name: "PERDURE_TASK_QUEUES", For: workerOnly, value: taskQueues,
		Meaning: "task queues of tools that the worker serves in addition to the main one, separated by commas; not set = none"},
	{Name: "PERDURE_TOOLS_ONLY", Default: "false", For: workerOnly, value: toolsOnly,
		Meaning: "true = the worker serves only those queues: it makes tool calls and runs no agents"},

	{Name: "PERDURE_STREAM", Default: "PERDURE", For: all, value: streamName,
		Meaning: "JetStream stream of the log, the same for all processes; subjects and buckets are named after it"},
	{Name: "PERDURE_REPLICAS", Default: "1", For: all, value: replicas,
		Meaning: "replicas of the log, 1 to 5; applies when the stream is created. Use 3 on a cluster"},
	{Name: "PERDURE_STREAM_MAX_BYTES", Default: "0", For: all, value: streamMaxBytes,
		Meaning: "largest size of the log, such as 50GiB; applies when the stream is created. Runs wait while it is full. 0 = unlimited"},

	{Name: "NATS_URL", Default: "nats://127.0.0.1:4222", For: all, value: natsURL,
		Meaning: "NATS servers, separated by commas; tls:// requires TLS"},
	{Name: "NATS_CREDS", For: all, value: natsCredentials, Meaning: "credentials file (JWT and seed)"},
	{Name: "NATS_USER", For: all, value: natsUser, Meaning: "user name"},
	{Name: "NATS_PASSWORD", For: all, value: natsPassword, Meaning: "password of NATS_USER", secret: true},
	{Name: "NATS_NKEY", For: all, value: natsNKey, Meaning: "file with the seed of an NKey"},
	{Name: "NATS_CERT", For: all, value: natsCert, Meaning: "file with the client's certificate, for mutual TLS"},
	{Name: "NATS_KEY", For: all, value: natsKey, Meaning: "file with the key of NATS_CERT"},
	{Name: "NATS_CA", For: all, value: natsCA, Meaning: "file with the certificate authorities of the servers; not set = those of the system"},

	{Name: "TEMPORAL_ADDRESS", For: all, value: passThrough(text),
		Meaning: "address of Temporal's frontend, host:port; not set = that of the configuration file, else localhost:7233"},
	{Name: "TEMPORAL_NAMESPACE", For: all, value: passThrough(text), Meaning: "namespace; not set = default"},
	{Name: "TEMPORAL_API_KEY", For: all, Meaning: "API key; enables TLS", secret: true},
	{Name: "TEMPORAL_CLIENT_AUTHORITY", For: all, value: passThrough(text), Meaning: "overrides the :authority of gRPC requests"},
	{Name: "TEMPORAL_TLS", For: all, value: passThrough(truth), Meaning: "true or false: TLS on or off"},
	{Name: "TEMPORAL_TLS_CLIENT_CERT_PATH", For: all, value: passThrough(text), Meaning: "file with the client's certificate"},
	{Name: "TEMPORAL_TLS_CLIENT_CERT_DATA", For: all, Meaning: "the client's certificate, PEM", secret: true},
	{Name: "TEMPORAL_TLS_CLIENT_KEY_PATH", For: all, value: passThrough(text), Meaning: "file with the client's key"},
	{Name: "TEMPORAL_TLS_CLIENT_KEY_DATA", For: all, Meaning: "the client's key, PEM", secret: true},
	{Name: "TEMPORAL_TLS_SERVER_CA_CERT_PATH", For: all, value: passThrough(text), Meaning: "file with the certificate authorities of the server"},
	{Name: "TEMPORAL_TLS_SERVER_CA_CERT_DATA", For: all, Meaning: "the certificate authorities, PEM", secret: true},
	{Name: "TEMPORAL_TLS_SERVER_NAME", For: all, value: passThrough(text), Meaning: "name in the server's certificate"},
	{Name: "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION", For: all, value: passThrough(truth), Meaning: "true = do not verify that name; never in production"},
	{Name: "TEMPORAL_CONFIG_FILE", For: all, value: passThrough(text), Meaning: "Temporal's client configuration file (TOML); not set = temporalio/temporal.toml in the user's configuration folder"},
	{Name: "TEMPORAL_PROFILE", For: all, value: passThrough(text), Meaning: "profile in that file; not set = default"},
	{Name: "TEMPORAL_GRPC_META_*", For: all, Meaning: "header of gRPC requests, such as TEMPORAL_GRPC_META_X_TEAM"},

	{Name: "OPENAI_API_KEY", For: workerDev, Meaning: "key for agents with openai/ and openai-responses/ models", secret: true},
	{Name: "OPENAI_BASE_URL", For: workerDev, Meaning: "base URL of these models; not set = OpenAI's"},
	{Name: "ANTHROPIC_API_KEY", For: workerDev, Meaning: "key for agents with anthropic/ models", secret: true},
	{Name: "ANTHROPIC_BASE_URL", For: workerDev, Meaning: "base URL of these models, without /v1; not set = Anthropic's"},
	{Name: "GEMINI_API_KEY", For: workerDev, Meaning: "key for agents with gemini/ models", secret: true},
	{Name: "GOOGLE_API_KEY", For: workerDev, Meaning: "the same; takes precedence over GEMINI_API_KEY, as in Google's SDKs", secret: true},
	{Name: "GEMINI_BASE_URL", For: workerDev, Meaning: "base URL of these models, without /v1beta; not set = Google's"},

	{Name: "PERDURE_CONNECT_TIMEOUT", Default: "2m", For: all, value: connectTimeout,
		Meaning: "how long the process waits for the first answers of NATS and Temporal, such as 90s; then it ends with an error"},
	{Name: "PERDURE_LOG_LEVEL", Default: "info", For: all, value: logLevel, Meaning: "lowest level that is logged: debug, info, warn or error"},
	{Name: "PERDURE_LOG_FORMAT", Default: "json", For: all, value: logFormat, Meaning: "json or text"},
	{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", For: withDev, Meaning: "URL of the OpenTelemetry collector for traces, such as http://otel-collector:4318; not set = no traces"},
	{Name: "OTEL_EXPORTER_OTLP_PROTOCOL", Default: "http/protobuf", For: withDev, Meaning: "protocol of traces: http/protobuf or grpc"},
	{Name: "OTEL_*", For: withDev, Meaning: "other variables of OpenTelemetry: OTEL_SDK_DISABLED, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_PROPAGATORS (tracecontext or none), OTEL_EXPORTER_OTLP_*"},
}

// setUp sets a value to the default, and then to the value of the environment. Errors:
// *VariableError.
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
