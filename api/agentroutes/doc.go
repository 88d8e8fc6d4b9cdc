// Package agentroutes serves the definitions of agents under /v1/agents: their list, capabilities,
// publication and revisions. A caller sees the agents of the platform and of its tenant; only
// administrators publish them, and read definitions. The catalog stores them, and this process has
// the current ones in memory.
package agentroutes
