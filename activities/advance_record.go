package activities

import (
	"encoding/json"

	"github.com/perdure/perdure/agents/pipeline"
)

// storedAdvance is the content that an advance stores in its done record for later activities
// (stream.Result.Kept). The workflow has the sequence of the record, in Position, StepRef or
// Branches. It is JSON in the log, so records of older versions lack newer members.
type storedAdvance struct {
	// Prompt is what an agent is sent as a user message. After is the ID of the message that the prompt
	// follows; "" = it is the first one, as in all records but those of older versions.
	Prompt string `json:"prompt,omitempty"`
	After  string `json:"after,omitempty"`
	// Agent and Revision are those of the pipeline, if its step requires a schema of an agent that
	// it names; see outputAgent.
	Agent    string `json:"agent,omitempty"`
	Revision string `json:"revision,omitempty"`
	// Result is the result of the agent, in the last advance of its steps (narration.KeptOutput).
	Result json.RawMessage `json:"result,omitempty"`
	// Question is the message of an approve step.
	Question string `json:"question,omitempty"`
	// Tree has the steps of a program.
	Tree json.RawMessage `json:"tree,omitempty"`
	// Items are the items of a map's branches, by index. Ends are set if the branches compensate
	// others: the last records of those, by index; 0 = the branch has nothing to compensate.
	Items []json.RawMessage `json:"items,omitempty"`
	Ends  []uint64          `json:"ends,omitempty"`
	// Done has what compensations need of the steps that this advance finished, by path. Ended is
	// the end of a branch.
	Done  map[string]pipeline.Done `json:"done,omitempty"`
	Ended pipeline.Ended           `json:"ended,omitzero"`
	// Detail is the detail of a failure in this advance; stream.Log.Detail reads it.
	Detail string `json:"detail,omitempty"`
}
