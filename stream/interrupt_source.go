package stream

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/agui"
)

// MetadataApproval is where a question about a tool call says by which rule it is asked.
const MetadataApproval = "perdure.approval"

// Asked is what a question says there: what clients may show, and whoever takes an answer has to know.
type Asked struct {
	Agent    string `json:"agent"`
	Revision string `json:"revision"`
	// Step is the path of the step whose rules they are; empty = they are those of the agent.
	Step string `json:"step,omitempty"`
	// Tree is the record that has that step, if it is a program's.
	Tree uint64 `json:"tree,omitempty"`
	// Rule is its place among the approvals of that revision.
	Rule       int    `json:"rule"`
	ArgsDigest string `json:"argsDigest"`
	// AskedAt is what the rule's times count from.
	AskedAt time.Time `json:"askedAt"`
	Quorum  int       `json:"quorum"`
}

// AskedBy reads by which rule a question is asked; nil = by none, a tool asks.
func AskedBy(question agui.Interrupt) (*Asked, error) {
	raw, ok := question.Metadata[MetadataApproval]
	if !ok {
		return nil, nil
	}
	var a Asked
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, fmt.Errorf("stream: question %s: %w", question.ID, err)
	}
	return &a, nil
}
