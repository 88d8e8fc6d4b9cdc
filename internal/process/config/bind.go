package config

import (
	"github.com/spf13/pflag"

	"github.com/perdure/perdure/internal/control/admission"
)

// The functions of this file map each variable to its field in Config and to its parser. The table
// in variables.go refers to them.

func addr(c *Config) pflag.Value           { return bind(&c.Addr, hostPort) }
func tlsCert(c *Config) pflag.Value        { return bind(&c.TLS.Cert, text) }
func tlsKey(c *Config) pflag.Value         { return bind(&c.TLS.Key, text) }
func tlsClientCA(c *Config) pflag.Value    { return bind(&c.TLS.ClientCA, text) }
func tlsClientNames(c *Config) pflag.Value { return bind(&c.TLS.ClientNames, certificateNames) }
func agentsDir(c *Config) pflag.Value      { return bind(&c.Agents, text) }
func origins(c *Config) pflag.Value        { return bind(&c.Origins, originList) }
func authMode(c *Config) pflag.Value {
	return bind(&c.Auth.Mode, oneOf(AuthNone, AuthHeader, AuthOIDC, AuthAPIKey))
}
func allowAnonymous(c *Config) pflag.Value { return bind(&c.Auth.AllowAnonymous, truth) }
func hosts(c *Config) pflag.Value          { return bind(&c.Auth.Hosts, hostList) }
func platformAdmin(c *Config) pflag.Value  { return bind(&c.Policies.Roles.PlatformAdmin, text) }
func tenantAdmin(c *Config) pflag.Value    { return bind(&c.Policies.Roles.TenantAdmin, text) }
func policies(c *Config) pflag.Value       { return bind(&c.Policies.Path, text) }
func principalsFile(c *Config) pflag.Value { return bind(&c.Principals, text) }
func subjectHeader(c *Config) pflag.Value  { return bind(&c.Auth.Headers.Subject, headerName) }
func rolesHeader(c *Config) pflag.Value    { return bind(&c.Auth.Headers.Roles, headerName) }
func tenantHeader(c *Config) pflag.Value   { return bind(&c.Auth.Headers.Tenant, headerName) }
func authProxies(c *Config) pflag.Value    { return bind(&c.Auth.Proxies, networks) }
func proxySecret(*Config) pflag.Value      { return bind(new([]string), proxySecrets) } // Auth.ProxySecrets reads it
func authKeys(c *Config) pflag.Value       { return bind(&c.Auth.Keys, text) }
func oidcIssuer(c *Config) pflag.Value     { return bind(&c.Auth.OIDC.Issuer, issuer) }
func oidcAudience(c *Config) pflag.Value   { return bind(&c.Auth.OIDC.Audiences, wordList) }
func subjectClaim(c *Config) pflag.Value   { return bind(&c.Auth.OIDC.SubjectClaim, text) }
func rolesClaim(c *Config) pflag.Value     { return bind(&c.Auth.OIDC.RolesClaim, text) }
func tenantClaim(c *Config) pflag.Value    { return bind(&c.Auth.OIDC.TenantClaim, text) }
func oidcTenant(c *Config) pflag.Value     { return bind(&c.Auth.OIDC.Tenant, text) }
func clientID(c *Config) pflag.Value       { return bind(&c.Auth.Sessions.ClientID, text) }
func oidcScopes(c *Config) pflag.Value     { return bind(&c.Auth.Sessions.Scopes, wordList) }
func sessionIdle(c *Config) pflag.Value    { return bind(&c.Auth.Sessions.Idle, sessionTime) }
func sessionLifetime(c *Config) pflag.Value {
	return bind(&c.Auth.Sessions.Lifetime, sessionTime)
}
func parkAfter(c *Config) pflag.Value     { return bind(&c.ParkAfter, positiveDuration) }
func retention(c *Config) pflag.Value     { return bind(&c.Retention, text) }
func strict(c *Config) pflag.Value        { return bind(&c.Strict, truth) }
func maxSockets(c *Config) pflag.Value    { return bind(&c.MaxSockets, upTo(1_000_000)) }
func maxStreams(c *Config) pflag.Value    { return bind(&c.MaxStreams, upTo(1_000_000)) }
func quotas(c *Config) pflag.Value        { return bind(&c.Quotas, text) }
func metricsAddr(c *Config) pflag.Value   { return bind(&c.MetricsAddr, hostPort) }
func workflowCache(c *Config) pflag.Value { return bind(&c.WorkflowCache, upTo(1_000_000)) }
func modelLimits(c *Config) pflag.Value   { return bind(&c.ModelLimits, admission.ParseLimits) }
func modelSilence(c *Config) pflag.Value  { return bind(&c.ModelSilence, positiveDuration) }
func allowPrivateHosts(c *Config) pflag.Value {
	return bind(&c.AllowPrivateHosts, truth)
}
func softTenantTokens(c *Config) pflag.Value {
	return bind(&c.TenantSoftTokensPerDay, positiveCount)
}
func softTenantCost(c *Config) pflag.Value { return bind(&c.TenantSoftCostPerDay, money) }
func agentsForce(c *Config) pflag.Value    { return bind(&c.ForceAgents, truth) }
func serveConsole(c *Config) pflag.Value   { return bind(&c.Console, truth) }
func deployment(c *Config) pflag.Value     { return bind(&c.Deployment, text) }
func buildID(c *Config) pflag.Value        { return bind(&c.BuildID, text) }
func promote(c *Config) pflag.Value        { return bind(&c.Promote, truth) }
func stopTimeout(c *Config) pflag.Value    { return bind(&c.StopTimeout, positiveDuration) }
func toolGrace(c *Config) pflag.Value      { return bind(&c.ToolGrace, positiveDuration) }
func taskQueues(c *Config) pflag.Value     { return bind(&c.TaskQueues, queueList) }
func toolsOnly(c *Config) pflag.Value      { return bind(&c.ToolsOnly, truth) }
func linkKey(c *Config) pflag.Value        { return bind(&c.LinkKey, secretKey) }
func publicURL(c *Config) pflag.Value      { return bind(&c.PublicURL, baseURL) }
func temporalUI(c *Config) pflag.Value     { return bind(&c.TemporalUI, baseURL) }
func traceURL(c *Config) pflag.Value       { return bind(&c.TraceURL, urlTemplate) }
func webhooks(c *Config) pflag.Value       { return bind(&c.Webhooks, text) }
func eventSources(c *Config) pflag.Value   { return bind(&c.EventSources, text) }
func prices(c *Config) pflag.Value         { return bind(&c.Prices, text) }
func tenantTokens(c *Config) pflag.Value   { return bind(&c.TenantTokensPerDay, positiveCount) }
func tenantCost(c *Config) pflag.Value     { return bind(&c.TenantCostPerDay, money) }
func streamName(c *Config) pflag.Value     { return bind(&c.Stream.Stream, subjectToken) }
func replicas(c *Config) pflag.Value       { return bind(&c.Stream.Replicas, upTo(5)) }
func streamMaxBytes(c *Config) pflag.Value { return bind(&c.Stream.MaxBytes, byteCount) }
func filesURL(c *Config) pflag.Value       { return bind(&c.Files, blobURL) }
func filesMaxSize(c *Config) pflag.Value   { return bind(&c.FilesMaxSize, byteCount) }
func filesScanner(c *Config) pflag.Value   { return bind(&c.FilesScanner, hostPort) }
func connectTimeout(c *Config) pflag.Value { return bind(&c.ConnectTimeout, positiveDuration) }
func logLevel(c *Config) pflag.Value       { return bind(&c.LogLevel, level) }
func logFormat(c *Config) pflag.Value      { return bind(&c.LogFormat, oneOf("json", "text")) }

func natsURL(c *Config) pflag.Value         { return bind(&c.NATS.URL, text) }
func natsCredentials(c *Config) pflag.Value { return bind(&c.NATS.Credentials, text) }
func natsUser(c *Config) pflag.Value        { return bind(&c.NATS.User, text) }
func natsPassword(c *Config) pflag.Value    { return bind(&c.NATS.Password, text) }
func natsNKey(c *Config) pflag.Value        { return bind(&c.NATS.NKey, text) }
func natsCert(c *Config) pflag.Value        { return bind(&c.NATS.Cert, text) }
func natsKey(c *Config) pflag.Value         { return bind(&c.NATS.Key, text) }
func natsCA(c *Config) pflag.Value          { return bind(&c.NATS.CA, text) }

// passThrough returns the value of a variable that a library reads. It is parsed here for an error
// with the variable's name, and so that it gets a flag; the parsed value itself is discarded.
func passThrough[T any](parse parser[T]) func(*Config) pflag.Value {
	return func(*Config) pflag.Value { return bind(new(T), parse) }
}
