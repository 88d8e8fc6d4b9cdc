package agentroutes

import "github.com/perdure/perdure/agents"

// Directory is the directory of definitions of this process. Agents are those of the last read without
// an error. Problem tells why a later read has failed; "" = none has.
type Directory struct {
	Agents  []*agents.Definition
	Problem string
}
