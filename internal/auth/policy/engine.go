package policy

import (
	"crypto/sha256"
	_ "embed" // for defaultPolicies
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/cedar-policy/cedar-go"

	"github.com/perdure/perdure/internal/auth"
)

//go:embed default.cedar
var defaultPolicies []byte

// File is a file with policies of the operator.
type File struct {
	Name string
	Text []byte
}

// Engine decides what callers may do, by its policies. It is safe for concurrent use.
type Engine struct {
	policies *cedar.PolicySet
	roles    Roles
	digest   string
}

// New returns an engine with the default policies and those of the operator. The error names the
// file and the line of a mistake, such as a missing @id, or an action that does not exist.
func New(roles Roles, files ...File) (*Engine, error) {
	e := &Engine{policies: cedar.NewPolicySet(), roles: roles}
	known, err := newSchema()
	if err != nil {
		return nil, err
	}
	digest := sha256.New()
	for _, file := range slices.Concat([]File{{"default.cedar", defaultPolicies}}, files) {
		fmt.Fprintf(digest, "%d\n%s", len(file.Text), file.Text)
		list, err := cedar.NewPolicyListFromBytes(file.Name, file.Text)
		if err != nil {
			return nil, fmt.Errorf("policies in %s: %w", file.Name, err)
		}
		for _, p := range list {
			id := cedar.PolicyID(p.Annotations()["id"])
			if id == "" {
				return nil, fmt.Errorf("policies in %s: line %d: the policy needs a name, such as @id(\"auditors\")", file.Name, p.Position().Line)
			}
			if err := known.check(p); err != nil {
				return nil, fmt.Errorf("policies in %s: line %d: @id(%q): %w", file.Name, p.Position().Line, id, err)
			}
			if !e.policies.Add(id, p) {
				return nil, fmt.Errorf("policies in %s: line %d: there is another policy with @id(%q)", file.Name, p.Position().Line, id)
			}
		}
	}
	e.digest = hex.EncodeToString(digest.Sum(nil))
	return e, nil
}

// Digest returns the SHA-256 of the text of all policies, in hex. The audit log records it.
func (e *Engine) Digest() string { return e.digest }

// RuleNone is the rule of a denial that no policy states: no policy permits the action.
const RuleNone = "no-permit"

// DeniedError tells that a caller may not do something.
type DeniedError struct {
	Action Action
	// Rule is the @id of a policy that forbids the action, or RuleNone.
	Rule string
}

// Error implements error.
func (d *DeniedError) Error() string {
	if d.Rule == RuleNone {
		return fmt.Sprintf("no policy permits the action %s", d.Action)
	}
	return fmt.Sprintf("the policy %s forbids the action %s", d.Rule, d.Action)
}

// Check decides whether a caller may do something, in some microseconds. It returns nil, or a
// *DeniedError. A policy that cannot be evaluated, for instance because it reads an attribute of
// another user, has no effect if it permits, and denies if it forbids.
func (e *Engine) Check(p auth.Principal, action Action, r Resource, c Context) error {
	caller := e.roles.caller(p)
	entities := cedar.EntityMap{caller.UID: caller, r.entity.UID: r.entity}
	decision, diagnostic := cedar.Authorize(e.policies, entities, cedar.Request{
		Principal: caller.UID, Action: action.uid(), Resource: r.entity.UID, Context: c.record(),
	})
	for _, failed := range diagnostic.Errors {
		if e.policies.Get(failed.PolicyID).Effect() == cedar.Forbid {
			return &DeniedError{action, string(failed.PolicyID)}
		}
	}
	if decision == cedar.Allow {
		return nil
	}
	if len(diagnostic.Reasons) > 0 {
		return &DeniedError{action, string(diagnostic.Reasons[0].PolicyID)}
	}
	return &DeniedError{action, RuleNone}
}

// IsDenied reports whether an error is a denial.
func IsDenied(err error) bool {
	_, ok := errors.AsType[*DeniedError](err)
	return ok
}
