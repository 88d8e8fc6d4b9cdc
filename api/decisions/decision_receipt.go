package decisions

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/internal/approvals/inbox"
)

// DecisionReceipt is the answer to a decision: its outcome, or as Recorded and in problems the
// decision that stands.
type DecisionReceipt struct {
	ID       string `json:"id"`
	Decision string `json:"decision"`
	// Repeated tells that the same decision or vote was recorded before, and that this request has
	// changed nothing. Recorded is the earlier one.
	Repeated bool             `json:"repeated,omitempty"`
	Recorded *DecisionReceipt `json:"recorded,omitempty"`
	// Missing is how many more approvers have to vote for the same arguments. Proposals counts the
	// votes for each proposal.
	Missing int           `json:"missing,omitempty"`
	Tallies []inbox.Tally `json:"tallies,omitempty"`
	// By and At are set in a recorded decision: the subject that decided ("" = an anonymous caller,
	// or no person), and when. Args are the arguments of an edit; Truncated tells that they are
	// left out because they are too large.
	By        string          `json:"by,omitempty"`
	At        time.Time       `json:"at,omitzero"`
	Args      json.RawMessage `json:"args,omitempty"`
	Truncated bool            `json:"truncated,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	// Cursor is for waitFor: a reader that sends it sees the effect of the decision.
	Cursor string `json:"cursor,omitempty"`
}
