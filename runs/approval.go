package runs

import "time"

// Approval is the approval rule under which approvers decide about a call, as far as the workflow
// needs it.
type Approval struct {
	// Rule is the index of the rule in the agent's definition.
	Rule int `json:"rule"`
	// ArgsDigest is the digest of the model's arguments.
	ArgsDigest string `json:"args"`
	// Canonical is the digest of their canonical form, which equal arguments share; "" =
	// ArgsDigest.
	Canonical string `json:"canonical,omitempty"`
	// RuleDigest is the digest of the rule. A remembered approval ends when it changes.
	RuleDigest string `json:"ruleDigest,omitempty"`
	// Quorum is how many approvers must approve; 0 means 1.
	Quorum int `json:"quorum,omitempty"`
	// Remind is how often approvers are reminded; 0 = never.
	Remind time.Duration `json:"remind,omitempty"`
	// Escalate are the times since the opening at which further approvers may decide.
	Escalate []time.Duration `json:"escalate,omitempty"`
	// Expires is how long approvers may decide; 0 = for ever.
	Expires  time.Duration `json:"expires,omitempty"`
	OnExpiry OnExpiry      `json:"onExpiry,omitempty"`
}

// OnExpiry says what happens to a call that nobody decides about in time.
type OnExpiry string

// The values of OnExpiry.
const (
	OnExpiryReject OnExpiry = "reject" // the model receives a result that nobody approved; the default
	OnExpirySkip   OnExpiry = "skip"   // the model receives a result that the call was skipped
	OnExpiryFail   OnExpiry = "fail"   // the run ends with CodeApprovalExpired
)
