package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// ApprovalRule returns the index of the approval rule that applies to a call; -1 = none, so the
// call needs no approval.
func (d *Definition) ApprovalRule(call ProposedCall) int {
	return slices.IndexFunc(d.Approvals, func(a Approval) bool { return a.appliesToTool(call.Tool) && a.applies(call) })
}

// approvalKey returns the path of a rule.
func approvalKey(i int) string { return fmt.Sprintf("approvals[%d]", i) }

// approvalMistakes returns the mistakes of all rules.
func (d *Definition) approvalMistakes() []mistake {
	if len(d.Approvals) > maxApprovals {
		return []mistake{newMistake("approvals", "must be at most %d, not %d", maxApprovals, len(d.Approvals))}
	}
	var found []mistake
	for i, a := range d.Approvals {
		found = append(found, a.mistakes(approvalKey(i))...)
		found = append(found, d.unmatchedToolNames(approvalKey(i), a)...)
	}
	return found
}

// unmatchedToolNames reports names of a rule that match none of the agent's tools: a rule with a
// misspelled name would never apply.
func (d *Definition) unmatchedToolNames(key string, a Approval) []mistake {
	if d.Remote != nil { // the rules are about tools of the client, which come with each input
		return nil
	}
	all := append(d.InlineTools(), d.ownTools()...)
	names, _ := SplitTools(all)
	names = append(names, Subagents(all)...)
	for _, name := range Handoffs(all) {
		names = append(names, HandoffTool(name))
	}
	var found []mistake
	for i, name := range a.Tools {
		isUsed := slices.ContainsFunc(names, func(t string) bool { return t == name || namesTool(t, name) })
		if toolName.MatchString(name) && !isUsed {
			found = append(found, mistake{key + ".tools", i, fmt.Sprintf("%s.tools: %q is not one of the agent's tools", key, name)})
		}
	}
	return found
}

// RuleDigest returns the digest of an approval rule: 16 hexadecimal digits that change only if the
// rule or the agent's name changes. Remembered approvals refer to it.
func (d *Definition) RuleDigest(rule int) string {
	body, _ := json.Marshal(struct { // texts and numbers can be encoded
		Agent string   `json:"agent"`
		Rule  Approval `json:"rule"`
	}{d.Name, d.Approvals[rule]})
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:8])
}
