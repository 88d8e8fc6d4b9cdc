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
	// Meaning is one line for help and documentation: the effect, the unit and special values. It
	// has no full stop at its end, since help adds the default.
	Meaning string
	// For lists the processes that read it.
	For []Process

	// value returns the pflag.Value that stores the variable in a Config; nil = only a library
	// reads it, or the reader of secrets.
	value func(*Config) pflag.Value
	// secret variables have no flag, can be in a file, and their values are removed from error
	// messages.
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

// matches reports whether v describes the variable with a name. The variable with the file of a
// secret is none itself.
func (v Variable) matches(name string) bool {
	prefix, many := strings.CutSuffix(v.Name, "*")
	isFile := v.secret && strings.HasSuffix(name, fileSuffix)
	return v.Name == name || many && strings.HasPrefix(name, prefix) && !isFile
}

// Known reports whether a process or a command reads the variable.
func Known(name string) bool {
	if isSecret(strings.TrimSuffix(name, fileSuffix)) {
		return true
	}
	return slices.Contains(ofCommands, name) || slices.ContainsFunc(variables, func(v Variable) bool { return v.matches(name) })
}

// Names of variables that other code of this package refers to.
const (
	publicURLName = "PERDURE_PUBLIC_URL"
	assertionKeys = "PERDURE_ASSERTION_KEYS"
	// EncryptionKeysName is the variable of Config.EncryptionKeys.
	EncryptionKeysName = "PERDURE_ENCRYPTION_KEYS"

	// EventSourcesName is the variable of Config.EventSources.
	EventSourcesName = "PERDURE_EVENT_SOURCES"

	clientIDName     = "PERDURE_OIDC_CLIENT_ID"
	clientSecretName = "PERDURE_OIDC_CLIENT_SECRET"
)

// group is a table of the documentation.
type group struct {
	title     string
	variables []Variable
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

// groups have all variables, by the part of Perdure that they configure and then by name. OTEL_*
// comes last, because it stands for all others.
var groups = []group{
	{"All processes", []Variable{
		{Name: "PERDURE_AGENTS", For: all, value: agentsDir,
			Meaning: "Directory of definitions. The API publishes its agents at start; the worker offers its tools and MCP servers. Not set: no definitions"},
		{Name: "PERDURE_CONNECT_TIMEOUT", Default: "2m", For: all, value: connectTimeout,
			Meaning: "How long the process waits for the first responses of NATS and Temporal, such as 90s. Then it ends with an error"},
		{Name: "PERDURE_FILES", For: withDev, value: filesURL,
			Meaning: "Where the bytes of files are, the same for all processes: s3://bucket?region=eu-central-1, gs://bucket, azblob://container, or file:///directory for tests. Not set: NATS"},
		{Name: "PERDURE_LOG_FORMAT", Default: "json", For: all, value: logFormat,
			Meaning: "Format of the log: json or text"},
		{Name: "PERDURE_LOG_LEVEL", Default: "info", For: all, value: logLevel,
			Meaning: "Lowest level that is logged: debug, info, warn or error"},
		{Name: "PERDURE_METRICS_ADDR", For: withDev, value: metricsAddr,
			Meaning: "Address at which the process serves /metrics, /healthz and /readyz, host:port, without TLS and credentials. Not set: no metrics"},
		{Name: publicURLName, For: withDev, value: publicURL,
			Meaning: "Base URL of the API, such as https://agents.example, for links that decide, and as the issuer of assertions. Not set: links have the host of the request that creates them; perdure dev issues assertions as its own address"},
		{Name: "PERDURE_REPLICAS", Default: "1", For: all, value: replicas,
			Meaning: "Replicas of the log and of its buckets, 1 to 5; 3 on a cluster. Used only when a process creates them"},
		{Name: secretsFolder, For: withDev,
			Meaning: "Directory of secrets: each file has the name and the value of a variable, such as OPENAI_API_KEY. Not set: none"},
		{Name: "PERDURE_STREAM", Default: "PERDURE", For: all, value: streamName,
			Meaning: "JetStream stream of the log, the same for all processes. The names of subjects and buckets begin with it"},
		{Name: "PERDURE_STREAM_MAX_BYTES", Default: "0", For: all, value: streamMaxBytes,
			Meaning: "Maximum size of the log, such as 50GiB; 0: unlimited. Runs wait while it is full. Used only when the first process creates the stream"},
	}},
	{"API", []Variable{
		{Name: "PERDURE_ADDR", Default: "127.0.0.1:8080", For: apiDev, value: addr,
			Meaning: "Address at which the API listens, host:port. Port 0 selects a free port, host 0.0.0.0 listens on all addresses"},
		{Name: "PERDURE_AGENTS_FORCE", For: apiDev, value: agentsForce,
			Meaning: "true: publish the directory's definitions even if newer ones were published over HTTP"},
		{Name: "PERDURE_CONSOLE", Default: "true", For: withDev, value: serveConsole,
			Meaning: "false: do not serve the console at /console/, and leave its address out of webhooks"},
		{Name: "PERDURE_CORS_ORIGINS", For: apiDev, value: origins,
			Meaning: "Origins whose pages may call the API, separated by commas. Each may contain one *; * alone allows all, and is refused in the mode header. Not set: none. perdure dev adds the origins of this machine"},
		{Name: "PERDURE_FILES_MAX_SIZE", Default: "100MiB", For: apiDev, value: filesMaxSize,
			Meaning: "Largest size of a file, such as 20MiB"},
		{Name: "PERDURE_FILES_SCANNER", For: apiDev, value: filesScanner,
			Meaning: "Address of clamd, host:port, which scans each file before it can be read. Not set: files are not scanned"},
		{Name: EventSourcesName, For: withDev, value: eventSources,
			Meaning: "YAML file of the sources of events: webhooks, which the API receives, and subjects of NATS, which the workers read. The same for all APIs and workers, read at start. Not set: none"},
		{Name: "PERDURE_HOSTS", For: apiDev, value: hosts,
			Meaning: "Hosts to which requests may be addressed (Host header), without ports, separated by commas. *.agents.example allows all names below a domain, * allows all. The names of this machine are always allowed. Not set: every host in the modes oidc and apikey, only this machine in the modes none and header"},
		{Name: "PERDURE_LINK_KEY", For: apiDev, value: linkKey, secret: true,
			Meaning: "Key that signs links, at least 32 bytes, the same for all APIs. Not set: the first API stores a random key in NATS. A new key invalidates all links"},
		{Name: "PERDURE_MAX_SOCKETS", Default: "10000", For: apiDev, value: maxSockets,
			Meaning: "Maximum number of WebSockets of the process; others get 503"},
		{Name: "PERDURE_MAX_STREAMS", Default: "20000", For: apiDev, value: maxStreams,
			Meaning: "Maximum number of concurrent event streams (HTTP and WebSocket) and GET responses of the process; others get 503"},
		{Name: "PERDURE_PARK_AFTER", Default: "10m", For: apiDev, value: parkAfter,
			Meaning: "How long a waiting run stays in its workflow before it is parked. A parked run belongs to no worker version"},
		{Name: "PERDURE_QUOTAS_FILE", For: withDev, value: quotas,
			Meaning: "File with the rates and quotas of tenants (YAML), read again when it changes. Not set: the defaults"},
		{Name: "PERDURE_RETENTION_FILE", For: apiDev, value: retention,
			Meaning: "File with the times to live of threads and of the audit log (YAML), read again when it changes, the same for all APIs. Not set: threads are kept for ever, the audit log for a year"},
		{Name: "PERDURE_STRICT", For: apiDev, value: strict,
			Meaning: "true: check every event. Before an event that AG-UI forbids, end the stream and log an error. For tests"},
		{Name: "PERDURE_TEMPORAL_UI_URL", For: apiDev, value: temporalUI,
			Meaning: "Base URL of Temporal's UI, such as https://temporal.example, for links to workflows. Every caller can read it. Not set: no links; perdure dev has the URL of its own UI"},
		{Name: "PERDURE_TLS_CERT_FILE", For: apiOnly, value: tlsCert,
			Meaning: "File with the certificate of the API and its intermediate authorities, PEM. The API follows its changes. Not set: plain HTTP"},
		{Name: "PERDURE_TLS_CLIENT_CA_FILE", For: apiOnly, value: tlsClientCA,
			Meaning: "File with the certificate authorities of clients, PEM. Every connection then needs a certificate of one of them. Not set: clients need no certificate"},
		{Name: "PERDURE_TLS_CLIENT_NAMES", For: apiOnly, value: tlsClientNames,
			Meaning: "Names of which a client's certificate must have one, separated by commas: DNS names, or URIs such as spiffe://example/proxy. Not set: every certificate of the authorities"},
		{Name: "PERDURE_TLS_KEY_FILE", For: apiOnly, value: tlsKey,
			Meaning: "File with the private key of PERDURE_TLS_CERT_FILE, PEM"},
		{Name: "PERDURE_TRACE_URL", For: apiDev, value: traceURL,
			Meaning: "URL in your trace store that finds the trace of a run, such as https://traces.example/search?run={runId}, for links. {runId} and {threadId} are replaced. Every caller can read it. Not set: no links"},
	}},
	{"Encryption", []Variable{
		{Name: EncryptionKeysName, For: withDev, value: passThrough(encryptionKeys), secret: true,
			Meaning: "URLs of the operator's keys, the same for all processes, separated by white space: base64key://, file://, hashivault://, awskms://, gcpkms:// or azurekeyvault://. The first one encrypts, all of them decrypt. Not set: nothing is encrypted"},
		{Name: "VAULT_ADDR", For: withDev,
			Meaning: "URL of Vault, for keys with hashivault://"},
		{Name: "VAULT_TOKEN", For: withDev, secret: true,
			Meaning: "Token of Vault. It needs the capability update for encrypt and decrypt of the key"},
	}},
	{"Authorization", []Variable{
		{Name: "PERDURE_PLATFORM_ADMIN_ROLE", Default: "perdure-platform-admin", For: withDev, value: platformAdmin,
			Meaning: "Role of the administrators of the platform: they publish agents for all tenants, and administer their own tenant. With PERDURE_AUTH=none every caller has it"},
		{Name: "PERDURE_POLICIES", For: withDev, value: policies,
			Meaning: "File with policies (Cedar), or folder with files *.cedar, in addition to the default policies. Read at start; the same for all APIs and workers"},
		{Name: "PERDURE_PRINCIPALS", For: withDev, value: principalsFile,
			Meaning: "File of principals, YAML or JSON: the approvers whom links may name, and the services as whom schedules may run. The process follows its changes; the same for all APIs and workers. Not set: none"},
		{Name: "PERDURE_TENANT_ADMIN_ROLE", Default: "perdure-tenant-admin", For: withDev, value: tenantAdmin,
			Meaning: "Role of the administrators of a tenant: they may do everything with its threads and schedules, and publish its agents"},
	}},
	{"Authentication", []Variable{
		{Name: "PERDURE_AUTH", Default: AuthNone, For: apiDev, value: authMode,
			Meaning: "Mode of authentication: none (accepts every caller; only on loopback), header (a proxy authenticates callers), oidc (tokens) or apikey (a file of keys)"},
		{Name: "PERDURE_AUTH_ALLOW_ANONYMOUS", Default: "false", For: apiDev, value: allowAnonymous,
			Meaning: "true: allow PERDURE_AUTH=none on addresses other than loopback. Every caller can then do everything. Needs PERDURE_HOSTS for hosts other than this machine"},
		{Name: "PERDURE_AUTH_KEYS", For: apiDev, value: authKeys,
			Meaning: "File of keys, YAML or JSON. The API follows its changes. Mode apikey"},
		{Name: "PERDURE_AUTH_PROXIES", For: apiDev, value: authProxies,
			Meaning: "Networks of the proxy, such as 10.1.0.0/16, separated by commas. Mode header refuses requests from others. Not set: every address if the proxy has a secret or a client certificate, else this machine"},
		{Name: proxySecretVariable, For: apiDev, value: proxySecret, secret: true,
			Meaning: "Secret that the proxy sends in the header Perdure-Proxy-Secret, at least 32 bytes, or two secrets during a rotation, separated by white space. Mode header requires it, or PERDURE_TLS_CLIENT_NAMES, except on loopback"},
		{Name: "PERDURE_AUTH_ROLES_HEADER", Default: "X-Forwarded-Groups", For: apiDev, value: rolesHeader,
			Meaning: "Header with the caller's roles, separated by commas. Modes header and none"},
		{Name: "PERDURE_AUTH_SUBJECT_HEADER", Default: "X-Forwarded-User", For: apiDev, value: subjectHeader,
			Meaning: "Header with the caller's subject. Modes header and none"},
		{Name: "PERDURE_AUTH_TENANT_HEADER", For: apiDev, value: tenantHeader,
			Meaning: "Header with the caller's tenant. Mode header. Not set: every caller has the tenant default"},
		{Name: "PERDURE_OIDC_AUDIENCE", For: apiDev, value: oidcAudience,
			Meaning: "Audiences, separated by commas. A token must have one of them"},
		{Name: clientIDName, For: apiDev, value: clientID,
			Meaning: "ID of Perdure as a client of the provider, for users who sign in with a browser. Needs PERDURE_PUBLIC_URL, except in perdure dev. Not set: no sign-in"},
		{Name: clientSecretName, For: apiDev, secret: true,
			Meaning: "Secret of that client. Not set: the client is public, and only PKCE protects the code"},
		{Name: "PERDURE_OIDC_ISSUER", For: apiDev, value: oidcIssuer,
			Meaning: "URL of the OpenID provider whose tokens are accepted, as in their claim iss"},
		{Name: "PERDURE_OIDC_ROLES_CLAIM", Default: "roles", For: apiDev, value: rolesClaim,
			Meaning: "Claim with the caller's roles, such as realm_access.roles: a list of strings, or one string separated by spaces"},
		{Name: "PERDURE_OIDC_SCOPES", Default: "openid,profile,email", For: apiDev, value: oidcScopes,
			Meaning: "Scopes that a sign-in requests, separated by commas. Some providers give a refresh token only with offline_access"},
		{Name: "PERDURE_OIDC_SUBJECT_CLAIM", Default: "sub", For: apiDev, value: subjectClaim,
			Meaning: "Claim with the caller's subject. Dots separate members of nested objects"},
		{Name: "PERDURE_OIDC_TENANT", For: apiDev, value: oidcTenant,
			Meaning: "Tenant of every caller, for a provider whose users are all one tenant. Instead of PERDURE_OIDC_TENANT_CLAIM"},
		{Name: "PERDURE_OIDC_TENANT_CLAIM", For: apiDev, value: tenantClaim,
			Meaning: "Claim with the caller's tenant. Mode oidc needs this or PERDURE_OIDC_TENANT"},
		{Name: "PERDURE_SESSION_IDLE", Default: "1h", For: apiDev, value: sessionIdle,
			Meaning: "How long the session of a browser may have no request"},
		{Name: "PERDURE_SESSION_LIFETIME", Default: "12h", For: apiDev, value: sessionLifetime,
			Meaning: "How long the session of a browser may last. Then the user signs in again"},
	}},
	{"Worker", []Variable{
		{Name: "PERDURE_ALLOW_PRIVATE_HOSTS", Default: "false", For: workerDev, value: allowPrivateHosts,
			Meaning: "true: HTTP tools, MCP servers, webhooks and remote agents may use addresses on loopback and private networks. perdure dev has the default true"},
		{Name: assertionKeys, For: workerDev, value: passThrough(privateKeys), secret: true,
			Meaning: "Private keys that sign assertions for tools: P-256 in PEM, the newest one last. Needs PERDURE_PUBLIC_URL. Not set: no assertions; perdure dev generates a key"},
		{Name: "PERDURE_BUILD_ID", For: workerOnly, value: buildID,
			Meaning: "Build ID of the worker in its deployment. Runs move to another version only between turns"},
		{Name: "PERDURE_DEPLOYMENT", For: workerOnly, value: deployment,
			Meaning: "Temporal worker deployment of the worker. Not set: the worker is not versioned"},
		{Name: "PERDURE_MODEL_LIMITS", For: workerDev, value: modelLimits,
			Meaning: "Limits of model providers, the same for all workers, which share them: calls at once, calls per minute, or both, such as openai=32/600rpm,anthropic=16. Not set: unlimited"},
		{Name: "PERDURE_MODEL_SILENCE", Default: "5m", For: workerDev, value: modelSilence,
			Meaning: "Maximum time without a chunk from the model, or without a byte from a remote agent. The worker then repeats the call, for a remote agent as remote.retry says"},
		{Name: "PERDURE_PROMOTE", For: workerOnly, value: promote,
			Meaning: "true: the first worker of a new version makes it the current version, unless it was current or ramping before"},
		{Name: "PERDURE_SECRET_*", For: withDev, secret: true,
			Meaning: "Secrets that tools, MCP servers, webhooks and remote agents name: ${secret:SHOP_TOKEN} is PERDURE_SECRET_SHOP_TOKEN. An API reads those of the sources of events"},
		{Name: "PERDURE_STOP_TIMEOUT", Default: "3s", For: workerOnly, value: stopTimeout,
			Meaning: "Time for active model and tool calls when the worker stops. Another worker repeats calls that do not finish"},
		{Name: "PERDURE_TASK_QUEUES", For: workerOnly, value: taskQueues,
			Meaning: "Task queues of tools that the worker serves in addition to the main queue, separated by commas. Not set: none"},
		{Name: "PERDURE_TOOLS_ONLY", Default: "false", For: workerOnly, value: toolsOnly,
			Meaning: "true: the worker serves only the queues in PERDURE_TASK_QUEUES. It calls tools and runs no agents"},
		{Name: "PERDURE_TOOL_GRACE", Default: "1m", For: workerDev, value: toolGrace,
			Meaning: "How long a run waits for a worker that has its agent's tools, before it fails with tool_unavailable"},
		{Name: "PERDURE_WEBHOOKS", For: workerDev, value: webhooks,
			Meaning: "YAML file of webhooks for changes of approvals, the same for all workers. Not set: none"},
		{Name: "PERDURE_WORKFLOW_CACHE", Default: "1000", For: workerDev, value: workflowCache,
			Meaning: "Maximum number of cached workflows. Others are replayed when they continue. Not set in perdure dev: 200"},
	}},
	{"Budgets", []Variable{
		{Name: "PERDURE_BUDGET_TENANT_COST_PER_DAY", For: workerDev, value: tenantCost,
			Meaning: "Maximum cost of a tenant per day (UTC), in the currency of the prices, such as 25 or 0.5. Workers then do not call models without a price. Not set: unlimited"},
		{Name: "PERDURE_BUDGET_TENANT_SOFT_COST_PER_DAY", For: workerDev, value: softTenantCost,
			Meaning: "Cost of a tenant per day above which each run needs an approval to continue. Must be below PERDURE_BUDGET_TENANT_COST_PER_DAY. Not set: no approval"},
		{Name: "PERDURE_BUDGET_TENANT_SOFT_TOKENS_PER_DAY", For: workerDev, value: softTenantTokens,
			Meaning: "Tokens of a tenant per day above which each run needs an approval to continue. Must be below PERDURE_BUDGET_TENANT_TOKENS_PER_DAY. Not set: no approval"},
		{Name: "PERDURE_BUDGET_TENANT_TOKENS_PER_DAY", For: workerDev, value: tenantTokens,
			Meaning: "Maximum number of tokens of a tenant per day (UTC). A budget in the prices file takes precedence. Not set: unlimited"},
		{Name: "PERDURE_PRICES", For: workerDev, value: prices,
			Meaning: "YAML file of prices and of tenants' budgets, the same for all workers. Not set: no model has a price"},
	}},
	{"Models", []Variable{
		{Name: "ANTHROPIC_API_KEY", For: workerDev, secret: true,
			Meaning: "Key for agents with anthropic/ models"},
		{Name: "ANTHROPIC_BASE_URL", For: workerDev,
			Meaning: "Base URL of anthropic/ models, without /v1. Not set: Anthropic's"},
		{Name: "GEMINI_API_KEY", For: workerDev, secret: true,
			Meaning: "Key for agents with gemini/ models"},
		{Name: "GEMINI_BASE_URL", For: workerDev,
			Meaning: "Base URL of gemini/ models, without /v1beta. Not set: Google's"},
		{Name: "GOOGLE_API_KEY", For: workerDev, secret: true,
			Meaning: "Key for agents with gemini/ models. Takes precedence over GEMINI_API_KEY, as in Google's SDKs"},
		{Name: "OPENAI_API_KEY", For: workerDev, secret: true,
			Meaning: "Key for agents with openai/ and openai-responses/ models"},
		{Name: "OPENAI_BASE_URL", For: workerDev,
			Meaning: "Base URL of openai/ and openai-responses/ models. Not set: OpenAI's"},
	}},
	{"NATS", []Variable{
		{Name: "NATS_CA", For: all, value: natsCA,
			Meaning: "File with the certificate authorities of the servers. Not set: those of the system"},
		{Name: "NATS_CERT", For: all, value: natsCert,
			Meaning: "File with the client's certificate, for mutual TLS"},
		{Name: "NATS_CREDS", For: all, value: natsCredentials,
			Meaning: "Credentials file (JWT and seed)"},
		{Name: "NATS_KEY", For: all, value: natsKey,
			Meaning: "File with the key of NATS_CERT"},
		{Name: "NATS_NKEY", For: all, value: natsNKey,
			Meaning: "File with the seed of an NKey"},
		{Name: "NATS_PASSWORD", For: all, value: natsPassword, secret: true,
			Meaning: "Password of NATS_USER"},
		{Name: "NATS_URL", Default: "nats://127.0.0.1:4222", For: all, value: natsURL,
			Meaning: "NATS servers, separated by commas. tls:// requires TLS"},
		{Name: "NATS_USER", For: all, value: natsUser,
			Meaning: "User name"},
	}},
	{"Temporal client", []Variable{
		{Name: "TEMPORAL_ADDRESS", For: all, value: passThrough(text),
			Meaning: "Address of Temporal's frontend, host:port. Not set: that of the configuration file, or else localhost:7233"},
		{Name: "TEMPORAL_API_KEY", For: all, secret: true,
			Meaning: "API key; enables TLS"},
		{Name: "TEMPORAL_CLIENT_AUTHORITY", For: all, value: passThrough(text),
			Meaning: "Overrides the :authority of gRPC requests"},
		{Name: "TEMPORAL_CONFIG_FILE", For: all, value: passThrough(text),
			Meaning: "Temporal's client configuration file (TOML). Not set: temporalio/temporal.toml in the user's configuration directory"},
		{Name: "TEMPORAL_GRPC_META_*", For: all,
			Meaning: "Header of gRPC requests, such as TEMPORAL_GRPC_META_X_TEAM"},
		{Name: "TEMPORAL_NAMESPACE", For: all, value: passThrough(text),
			Meaning: "Namespace. Not set: default"},
		{Name: "TEMPORAL_PROFILE", For: all, value: passThrough(text),
			Meaning: "Profile in TEMPORAL_CONFIG_FILE. Not set: default"},
		{Name: "TEMPORAL_TLS", For: all, value: passThrough(truth),
			Meaning: "true or false: TLS on or off"},
		{Name: "TEMPORAL_TLS_CLIENT_CERT_DATA", For: all, secret: true,
			Meaning: "The client's certificate, PEM"},
		{Name: "TEMPORAL_TLS_CLIENT_CERT_PATH", For: all, value: passThrough(text),
			Meaning: "File with the client's certificate"},
		{Name: "TEMPORAL_TLS_CLIENT_KEY_DATA", For: all, secret: true,
			Meaning: "The client's key, PEM"},
		{Name: "TEMPORAL_TLS_CLIENT_KEY_PATH", For: all, value: passThrough(text),
			Meaning: "File with the client's key"},
		{Name: "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION", For: all, value: passThrough(truth),
			Meaning: "true: do not verify the server's name. Never in production"},
		{Name: "TEMPORAL_TLS_SERVER_CA_CERT_DATA", For: all, secret: true,
			Meaning: "The certificate authorities of the server, PEM"},
		{Name: "TEMPORAL_TLS_SERVER_CA_CERT_PATH", For: all, value: passThrough(text),
			Meaning: "File with the certificate authorities of the server"},
		{Name: "TEMPORAL_TLS_SERVER_NAME", For: all, value: passThrough(text),
			Meaning: "Name in the server's certificate"},
	}},
	{"Telemetry", []Variable{
		{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", For: withDev,
			Meaning: "URL of the OpenTelemetry collector for traces and for entries of the audit log, such as http://otel-collector:4318. Not set: neither"},
		{Name: "OTEL_EXPORTER_OTLP_PROTOCOL", Default: "http/protobuf", For: withDev,
			Meaning: "Protocol of traces and log records: http/protobuf or grpc"},
		{Name: "OTEL_*", For: withDev,
			Meaning: "Other variables of OpenTelemetry: OTEL_SDK_DISABLED, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_PROPAGATORS (tracecontext or none), OTEL_EXPORTER_OTLP_*"},
	}},
}

// variables are those of all groups.
var variables = flatten(groups)

func flatten(groups []group) []Variable {
	var list []Variable
	for _, g := range groups {
		list = append(list, g.variables...)
	}
	return list
}

// setUp sets a value to the default, and then to the value of the environment. Errors:
// *VariableError.
func (v Variable) setUp(value pflag.Value, env environment) error {
	for _, s := range []string{v.Default, env.get(v.Name)} {
		if s == "" {
			continue
		}
		if err := value.Set(s); err != nil {
			return &VariableError{Name: v.Name, Err: err}
		}
	}
	return nil
}
