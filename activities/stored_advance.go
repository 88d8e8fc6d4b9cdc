package activities

import (
	"encoding/json"

	"github.com/perdure/perdure/agents/pipeline"
)

// storedAdvance is what an advance stores for later steps.
type storedAdvance struct {
	// Prompt is what an agent is asked. Behind is the ID of the agent's message that precedes it,
	// if the agent is asked again.
	Prompt string `json:"prompt,omitempty"`
	Behind string `json:"behind,omitempty"`
	// Agent and Revision are those of the pipeline, if its step defines what another agent has to
	// answer.
	Agent    string `json:"agent,omitempty"`
	Revision string `json:"revision,omitempty"`
	// Question is the message of an approval.
	Question string `json:"question,omitempty"`
	// Tree are the steps of a program.
	Tree json.RawMessage `json:"tree,omitempty"`
	// Items are those of a map's branches. Ends are the records of the ends of the branches that
	// these compensate.
	Items []json.RawMessage `json:"items,omitempty"`
	Ends  []uint64          `json:"ends,omitempty"`
	// Done has what compensations have to know of steps, by path. Ended is the end of a branch.
	Done  map[string]pipeline.Done `json:"done,omitempty"`
	Ended pipeline.Ended           `json:"ended,omitzero"`
	// Detail is the detail of a failure in this advance (see stream.Log.Detail).
	Detail string `json:"detail,omitempty"`
}
