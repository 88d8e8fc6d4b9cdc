package stream

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/agui"
)

// MetadataApproval is the key of an ApprovalSource in the metadata of an interrupt.
const MetadataApproval = "perdure.approval"

// ApprovalSource tells which approval rule of an agent made an interrupt.
type ApprovalSource struct {
	Agent    string `json:"agent"`
	Revision string `json:"revision"`
	// Step is the path of the step with the rule; "" = it is a rule of the agent.
	Step string `json:"step,omitempty"`
	// Tree is the sequence of the record with the step tree, if the step belongs to a program; 0 =
	// it does not.
	Tree uint64 `json:"tree,omitempty"`
	// Rule is the index of the rule among the approvals of the revision.
	Rule       int    `json:"rule"`
	ArgsDigest string `json:"argsDigest"`
	// Limit tells that the interrupt is about an exceeded limit.
	Limit bool `json:"limit,omitempty"`
	// OpenedAt is when the interrupt was made; the rule's durations begin then. Quorum is the
	// number of approvers that the rule needs.
	OpenedAt time.Time `json:"openedAt"`
	Quorum   int       `json:"quorum"`
}

// ApprovalSourceOf reads the rule that made an interrupt; nil = no rule did, for instance because
// it is a question of a tool.
func ApprovalSourceOf(interrupt agui.Interrupt) (*ApprovalSource, error) {
	raw, ok := interrupt.Metadata[MetadataApproval]
	if !ok {
		return nil, nil
	}
	var source ApprovalSource
	if err := json.Unmarshal(raw, &source); err != nil {
		return nil, fmt.Errorf("stream: interrupt %s: %w", interrupt.ID, err)
	}
	return &source, nil
}
