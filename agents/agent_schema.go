package agents

import _ "embed" // the schema

//go:embed agent.schema.json
var agentSchema string

// AgentSchema returns the JSON schema of definitions of agents, for editors. [Parse] checks more than
// the schema, such as expressions and names of steps.
func AgentSchema() string { return agentSchema }
