// Package agentroutes serves the definitions of agents under /v1/agents: their list, capabilities,
// publication and revisions. Definitions are shared by all tenants; only publishing needs the role
// of administrators. The catalog stores them, and this process has the current ones in memory.
package agentroutes
