// Package agentroutes serves the definitions of agents under /v1/agents: their list, capabilities,
// publication and revisions.
package agentroutes
