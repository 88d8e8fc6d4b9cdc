package activities

import (
	"slices"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file compares the arguments of calls with approvals that cover further calls ("remember":
// "arguments" or "tool").

// isRemembered reports whether an earlier approval covers a call under a rule, by the rule's
// digest: an approval ends when the rule changes.
func isRemembered(approvals []stream.Remembered, tool, rule, arguments string) bool {
	return slices.ContainsFunc(approvals, func(r stream.Remembered) bool {
		return r.Tool == tool && r.Rule == rule && (r.Args == "" || r.Args == runs.CanonicalDigest(arguments))
	})
}
