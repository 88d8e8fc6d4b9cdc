package config

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Variable is an environment variable that a process reads.
type Variable struct {
	// Name is the variable. With "*" at its end it stands for all variables with that prefix.
	Name string
	// Default is the value if the variable is not set.
	Default string
	// Meaning is one line: the effect, the unit and special values.
	Meaning string
	// For lists the processes that read it.
	For []Process

	value  func(*Config) pflag.Value // nil: only a library reads it
	secret bool
}

// Flag returns the name of the flag that mirrors the variable, without dashes; empty = none.
func (v Variable) Flag() string {
	if v.secret || v.value == nil {
		return ""
	}
	name := strings.TrimPrefix(v.Name, "PERDURE_")
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

// Variables returns what a process reads, in the order of the documentation.
func Variables(p Process) []Variable {
	var list []Variable
	for _, v := range variables {
		if slices.Contains(v.For, p) {
			list = append(list, v)
		}
	}
	return list
}

// isSecret reports whether a variable holds a secret.
func isSecret(name string) bool {
	return slices.ContainsFunc(variables, func(v Variable) bool { return v.secret && v.matches(name) })
}

func (v Variable) matches(name string) bool {
	prefix, many := strings.CutSuffix(v.Name, "*")
	return v.Name == name || many && strings.HasPrefix(name, prefix)
}

// Known reports whether any process reads the variable.
func Known(name string) bool {
	return slices.Contains(ofCommands, name) || slices.ContainsFunc(variables, func(v Variable) bool { return v.matches(name) })
}

var (
	all        = []Process{API, Worker}
	withDev    = []Process{API, Worker, Dev}
	apiOnly    = []Process{API}
	apiDev     = []Process{API, Dev}
	workerOnly = []Process{Worker}
	workerDev  = []Process{Worker, Dev}
)

// ofCommands are read by commands of perdure that ask a server. They may be set in the same shell.
var ofCommands = []string{"PERDURE_URL", "PERDURE_TOKEN", "PERDURE_SUBJECT", "PERDURE_ROLES"}

var variables = []Variable{
	{Name: "PERDURE_ADDR", Default: "127.0.0.1:8080", For: apiOnly, value: addr,
		Meaning: "host:port that the api listens on; port 0 = any free one; 0.0.0.0 opens it to the network"},
	{Name: "PERDURE_AGENTS", For: all, value: agentsDir,
		Meaning: "folder of definitions: the api publishes its agents at start, the worker has its tools and MCP servers; not set = none"},
	{Name: "PERDURE_AGENTS_FORCE", For: apiDev, value: agentsForce,
		Meaning: "true = publish that folder's definitions also in place of newer ones that came over HTTP"},
	{Name: "PERDURE_CORS_ORIGINS", For: apiDev, value: origins,
		Meaning: "origins whose pages may call the api, separated by commas, each with at most one *; * alone = all; not set = none. perdure dev adds those of this machine"},
	{Name: "PERDURE_AUTH", Default: AuthNone, For: apiDev, value: authMode,
		Meaning: "how the api finds out who calls: none (everybody is let in; only on loopback), header (a proxy says it), oidc (tokens) or apikey (a file of keys)"},
	{Name: "PERDURE_AUTH_ALLOW_ANONYMOUS", Default: "false", For: apiDev, value: allowAnonymous,
		Meaning: "true = PERDURE_AUTH may be none on addresses that others can reach: everybody who can may use everything"},
	{Name: "PERDURE_ADMIN_ROLE", Default: "admin", For: apiDev, value: adminRole,
		Meaning: "role of those who may publish agents, which all tenants share; with PERDURE_AUTH=none everybody has it"},
	{Name: "PERDURE_AUTH_SUBJECT_HEADER", Default: "X-Forwarded-User", For: apiDev, value: subjectHeader,
		Meaning: "header that names the caller, with header and none"},
	{Name: "PERDURE_AUTH_ROLES_HEADER", Default: "X-Forwarded-Groups", For: apiDev, value: rolesHeader,
		Meaning: "header with the caller's roles, separated by commas, with header and none"},
	{Name: "PERDURE_AUTH_TENANT_HEADER", For: apiDev, value: tenantHeader,
		Meaning: "header with the caller's tenant, with header; not set = everybody has the tenant default"},
	{Name: "PERDURE_AUTH_PROXIES", Default: "127.0.0.0/8,::1/128", For: apiDev, value: authProxies,
		Meaning: "networks that the proxy of header sends from, separated by commas; others are refused"},
	{Name: "PERDURE_AUTH_KEYS", For: apiDev, value: authKeys,
		Meaning: "file with the keys of apikey, YAML or JSON; read at start"},
	{Name: "PERDURE_OIDC_ISSUER", For: apiDev, value: oidcIssuer,
		Meaning: "URL of the OpenID provider whose tokens are accepted, as they name it"},
	{Name: "PERDURE_OIDC_AUDIENCE", For: apiDev, value: oidcAudience,
		Meaning: "audiences of which a token must have one, separated by commas"},
	{Name: "PERDURE_OIDC_SUBJECT_CLAIM", Default: "sub", For: apiDev, value: subjectClaim,
		Meaning: "claim that names the caller; dots lead into objects"},
	{Name: "PERDURE_OIDC_ROLES_CLAIM", Default: "roles", For: apiDev, value: rolesClaim,
		Meaning: "claim with the caller's roles, such as realm_access.roles: a list, or words in one text"},
	{Name: "PERDURE_OIDC_TENANT_CLAIM", For: apiDev, value: tenantClaim,
		Meaning: "claim with the caller's tenant; not set = everybody has the tenant default"},
	{Name: "PERDURE_PARK_AFTER", Default: "10m", For: apiDev, value: parkAfter,
		Meaning: "how long a run waits for a person in the workflow that runs it, on its version of the worker; then in one that any version holds"},
	{Name: "PERDURE_STRICT", For: apiDev, value: strict,
		Meaning: "true = end a stream before an event that AG-UI forbids, with an error in the log; for tests"},
	{Name: "PERDURE_MAX_SOCKETS", Default: "10000", For: apiDev, value: maxSockets,
		Meaning: "how many WebSockets the process holds; one beyond is refused with 503"},
	{Name: "PERDURE_MAX_STREAMS", Default: "20000", For: apiDev, value: maxStreams,
		Meaning: "how many event streams, over HTTP and over WebSockets, and answers to GET requests the process sends at a time; one beyond is refused with 503"},
	{Name: "PERDURE_PUBLIC_URL", For: apiDev, value: publicURL,
		Meaning: "where people reach the api, such as https://agents.example: links that decide lead there; not set = where they were asked for"},
	{Name: "PERDURE_LINK_KEY", For: apiDev, value: linkKey, secret: true,
		Meaning: "signs those links, at least 32 bytes, the same for all apis; not set = one that the first api puts into NATS. Another one makes all links invalid"},
	{Name: "PERDURE_METRICS_ADDR", For: workerOnly, value: metricsAddr,
		Meaning: "host:port where the worker serves /metrics; not set = nowhere (the api serves it on its own address)"},
	{Name: "PERDURE_ALLOW_PRIVATE_HOSTS", Default: "false", For: workerOnly, value: allowPrivateHosts,
		Meaning: "true = HTTP tools and MCP servers may be on loopback and private networks; in perdure dev they may unless this says false"},
	{Name: "PERDURE_WEBHOOKS", For: workerDev, value: webhooks,
		Meaning: "YAML file of webhooks that are told what happens to approvals; not set = none. The same for all workers"},
	{Name: "PERDURE_PRICES", For: workerDev, value: prices,
		Meaning: "YAML file of what models cost, and of tenants' budgets; not set = no model has a price. The same for all workers"},
	{Name: "PERDURE_BUDGET_TENANT_TOKENS_PER_DAY", For: workerDev, value: tenantTokens,
		Meaning: "tokens that a tenant may use from midnight to midnight, UTC, unless the file has a budget of its own for it; not set = as many as it likes"},
	{Name: "PERDURE_BUDGET_TENANT_COST_PER_DAY", For: workerDev, value: tenantCost,
		Meaning: "the same for what they cost, in the currency of the prices, such as 25 or 0.5; models without a price are not called then"},
	{Name: "PERDURE_BUDGET_TENANT_SOFT_TOKENS_PER_DAY", For: workerDev, value: softTenantTokens,
		Meaning: "tokens that a tenant uses in such a day before each run asks people whether it may go on, below those that end runs; not set = none does"},
	{Name: "PERDURE_BUDGET_TENANT_SOFT_COST_PER_DAY", For: workerDev, value: softTenantCost,
		Meaning: "the same for what they cost"},
	{Name: "PERDURE_SECRET_*", For: workerDev, secret: true,
		Meaning: "secrets that tools, MCP servers and webhooks name: ${secret:SHOP_TOKEN} is PERDURE_SECRET_SHOP_TOKEN"},
	{Name: "PERDURE_WORKFLOW_CACHE", Default: "1000", For: workerDev, value: workflowCache,
		Meaning: "how many workflows stay in memory; one beyond costs a replay when it goes on"},
	{Name: "PERDURE_MODEL_SILENCE", Default: "5m", For: workerDev, value: modelSilence,
		Meaning: "how long a model may say nothing, before its first word or between two; then the call is made anew"},
	{Name: "PERDURE_DEPLOYMENT", For: workerOnly, value: deployment,
		Meaning: "Temporal worker deployment that the worker belongs to; not set = not versioned"},
	{Name: "PERDURE_BUILD_ID", For: workerOnly, value: buildID,
		Meaning: "version of the worker within its deployment; runs stay on the version that began them"},
	{Name: "PERDURE_PROMOTE", For: workerOnly, value: promote,
		Meaning: "true = make this version the deployment's current one when its first worker starts; not if it ever was current or ramping"},
	{Name: "PERDURE_STOP_TIMEOUT", Default: "3s", For: workerOnly, value: stopTimeout,
		Meaning: "how long model and tool calls may take to end when the worker is told to stop; what is cut then, another worker does again"},
	{Name: "PERDURE_TOOL_GRACE", Default: "1m", For: workerDev, value: toolGrace,
		Meaning: "how long a run waits for a worker that has its agent's tools, before it fails with tool_unavailable"},
	{Name: "PERDURE_TASK_QUEUES", For: workerOnly, value: taskQueues,
		Meaning: "task queues of tools that the worker serves besides the one of all workers, separated by commas; not set = none"},
	{Name: "PERDURE_TOOLS_ONLY", Default: "false", For: workerOnly, value: toolsOnly,
		Meaning: "true = the worker serves those queues and nothing else: it makes tool calls and runs no agents"},

	{Name: "PERDURE_STREAM", Default: "PERDURE", For: all, value: streamName,
		Meaning: "JetStream stream of the log; subjects and buckets are named after it. The same for all processes"},
	{Name: "PERDURE_REPLICAS", Default: "1", For: all, value: replicas,
		Meaning: "copies of the log, 1 to 5; counts when the stream is created. 3 on a cluster"},
	{Name: "PERDURE_STREAM_MAX_BYTES", Default: "0", For: all, value: streamMaxBytes,
		Meaning: "bound of the log, such as 50GiB; counts when the stream is created. When it is full, runs wait. 0 = no bound"},

	{Name: "NATS_URL", Default: "nats://127.0.0.1:4222", For: all, value: natsURL,
		Meaning: "NATS servers, separated by commas; tls:// = insist on TLS"},
	{Name: "NATS_CREDS", For: all, value: natsCredentials, Meaning: "credentials file (JWT and seed)"},
	{Name: "NATS_USER", For: all, value: natsUser, Meaning: "user name"},
	{Name: "NATS_PASSWORD", For: all, value: natsPassword, Meaning: "password of NATS_USER", secret: true},
	{Name: "NATS_NKEY", For: all, value: natsNKey, Meaning: "file with the seed of an NKey"},
	{Name: "NATS_CERT", For: all, value: natsCert, Meaning: "file with the client's certificate, for mutual TLS"},
	{Name: "NATS_KEY", For: all, value: natsKey, Meaning: "file with the key of NATS_CERT"},
	{Name: "NATS_CA", For: all, value: natsCA, Meaning: "file with the certificates that the servers' are checked against; not set = the system's"},

	{Name: "TEMPORAL_ADDRESS", For: all, value: passThrough(text),
		Meaning: "host:port of Temporal's frontend; not set = as the configuration file says, else localhost:7233"},
	{Name: "TEMPORAL_NAMESPACE", For: all, value: passThrough(text), Meaning: "namespace; not set = default"},
	{Name: "TEMPORAL_API_KEY", For: all, Meaning: "API key; turns TLS on", secret: true},
	{Name: "TEMPORAL_CLIENT_AUTHORITY", For: all, value: passThrough(text), Meaning: "overrides the :authority of gRPC requests"},
	{Name: "TEMPORAL_TLS", For: all, value: passThrough(truth), Meaning: "true or false: TLS on or off"},
	{Name: "TEMPORAL_TLS_CLIENT_CERT_PATH", For: all, value: passThrough(text), Meaning: "file with the client's certificate"},
	{Name: "TEMPORAL_TLS_CLIENT_CERT_DATA", For: all, Meaning: "the certificate itself, PEM", secret: true},
	{Name: "TEMPORAL_TLS_CLIENT_KEY_PATH", For: all, value: passThrough(text), Meaning: "file with the client's key"},
	{Name: "TEMPORAL_TLS_CLIENT_KEY_DATA", For: all, Meaning: "the key itself, PEM", secret: true},
	{Name: "TEMPORAL_TLS_SERVER_CA_CERT_PATH", For: all, value: passThrough(text), Meaning: "file with the certificates that the server's is checked against"},
	{Name: "TEMPORAL_TLS_SERVER_CA_CERT_DATA", For: all, Meaning: "these certificates themselves, PEM", secret: true},
	{Name: "TEMPORAL_TLS_SERVER_NAME", For: all, value: passThrough(text), Meaning: "name that the server's certificate must have"},
	{Name: "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION", For: all, value: passThrough(truth), Meaning: "true = do not check that name; never in production"},
	{Name: "TEMPORAL_CONFIG_FILE", For: all, value: passThrough(text), Meaning: "Temporal's client configuration file (TOML); not set = temporalio/temporal.toml in the user's configuration folder"},
	{Name: "TEMPORAL_PROFILE", For: all, value: passThrough(text), Meaning: "profile in that file; not set = default"},
	{Name: "TEMPORAL_GRPC_META_*", For: all, Meaning: "adds a header to gRPC requests, such as TEMPORAL_GRPC_META_X_TEAM"},

	{Name: "OPENAI_API_KEY", For: workerDev, Meaning: "key for agents with openai/ and openai-responses/ models", secret: true},
	{Name: "OPENAI_BASE_URL", For: workerDev, Meaning: "where these models are; not set = OpenAI's own"},
	{Name: "ANTHROPIC_API_KEY", For: workerDev, Meaning: "key for agents with anthropic/ models", secret: true},
	{Name: "ANTHROPIC_BASE_URL", For: workerDev, Meaning: "where these models are, without /v1; not set = Anthropic's own"},
	{Name: "GEMINI_API_KEY", For: workerDev, Meaning: "key for agents with gemini/ models", secret: true},
	{Name: "GOOGLE_API_KEY", For: workerDev, Meaning: "the same; goes before GEMINI_API_KEY, as with Google's own software", secret: true},
	{Name: "GEMINI_BASE_URL", For: workerDev, Meaning: "where these models are, without /v1beta; not set = Google's own"},

	{Name: "PERDURE_CONNECT_TIMEOUT", Default: "2m", For: all, value: connectTimeout,
		Meaning: "how long NATS and Temporal may take to answer for the first time, such as 90s; then the process ends with an error"},
	{Name: "PERDURE_LOG_LEVEL", Default: "info", For: all, value: logLevel, Meaning: "least severe level that is logged: debug, info, warn, error"},
	{Name: "PERDURE_LOG_FORMAT", Default: "json", For: all, value: logFormat, Meaning: "json or text"},
	{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", For: withDev, Meaning: "OpenTelemetry collector that traces go to, such as http://otel-collector:4318; not set = nowhere"},
	{Name: "OTEL_EXPORTER_OTLP_PROTOCOL", Default: "http/protobuf", For: withDev, Meaning: "how: http/protobuf or grpc"},
	{Name: "OTEL_*", For: withDev, Meaning: "more of OpenTelemetry's own: OTEL_SDK_DISABLED, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_PROPAGATORS (tracecontext or none), OTEL_EXPORTER_OTLP_*"},
}
