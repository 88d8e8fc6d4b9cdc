package agents_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agents"
)

const withSoft = `name: a
model: p/m
limits:
  tokens: 100000
  cost: 2
  soft:
    turns: 10
    tokens: 50000
    duration: 5m
    cost: 0.75
    approval: {approvers: [ann, role:ops], quorum: 2, notByRequester: true, remind: 10m, escalate: [{after: 30m, to: [bob]}], expires: 1h, onExpiry: escalate}
`

func TestSoftLimits(t *testing.T) {
	t.Parallel()
	d, err := agents.Parse("a.yaml", []byte(withSoft))
	if err != nil {
		t.Fatal(err)
	}
	want := &agents.SoftLimits{Turns: 10, Tokens: 50_000, Duration: 5 * time.Minute, Cost: 750_000, Approval: agents.Approval{
		Approvers: []string{"ann", "role:ops"}, Quorum: 2, NotByRequester: true, Remind: 10 * time.Minute,
		Escalate: []agents.Escalation{{After: 30 * time.Minute, To: []string{"bob"}}}, Expires: time.Hour, OnExpiry: agents.OnExpiryEscalate,
	}}
	if diff := cmp.Diff(want, d.Limits.Soft); diff != "" {
		t.Errorf("soft limits (-want +got):\n%s", diff)
	}
	text, err := agents.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := agents.Decode(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if diff := cmp.Diff(d, decoded); diff != "" {
		t.Errorf("encoded and decoded (-want +got):\n%s", diff)
	}
	written, err := d.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := agents.Parse("a.yaml", written); err != nil || again.Revision() != d.Revision() {
		t.Errorf("as YAML: got another revision (%v), want the same of\n%s", err, written)
	}
}

// TestSoftLimitsHaveOneForm: an omitted value and an explicit default have the same revision.
func TestSoftLimitsHaveOneForm(t *testing.T) {
	t.Parallel()
	const base = "name: a\nmodel: p/m\nlimits: {soft: {tokens: 5, approval: {expires: 1h"
	plain, err := agents.Parse("a.yaml", []byte(base+"}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	spelled, err := agents.Parse("a.yaml", []byte(base+", onExpiry: reject}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if plain.Revision() != spelled.Revision() {
		t.Errorf("revision with an explicit default of onExpiry = %s, want %s", spelled.Revision(), plain.Revision())
	}
	other, err := agents.Parse("a.yaml", []byte(base+", approvers: [ann]}}}\n"))
	if err != nil || other.Revision() == plain.Revision() {
		t.Errorf("revision with other approvers: got the same (%v), want another", err)
	}
}

func TestInvalidSoftLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, soft, want string }{
		{"nothing", "{}", "a.yaml:4: limits.soft must have at least one of turns, tokens, duration and cost"},
		{"only an approval", "{approval: {expires: 1h}}", "a.yaml:4: limits.soft must have at least one of turns, tokens, duration and cost"},
		{"zero", "{tokens: 0}", "a.yaml:4: limits.soft.tokens must be greater than zero"},
		{"as many turns", "{turns: 30}", "a.yaml:4: limits.soft.turns must be below limits.turns, which is 30"},
		{"more tokens", "{tokens: 400001}", "a.yaml:4: limits.soft.tokens must be below limits.tokens, which is 400000"},
		{"more time", "{duration: 3h}", "a.yaml:4: limits.soft.duration must be below limits.duration, which is 2h0m0s"},
		{"more cost", "{cost: 1.5}", "a.yaml:4: limits.soft.cost must be below limits.cost, which is 1.25"},
		{"unknown key", "{turns: 1, calls: 2}", `a.yaml:4: unknown key "limits.soft.calls"`},
		{"tools", "{turns: 1, approval: {tools: [x]}}", `a.yaml:4: unknown key "limits.soft.approval.tools"`},
		{"an invalid onExpiry", "{turns: 1, approval: {expires: 1h, onExpiry: skip}}", `a.yaml:4: limits.soft.approval.onExpiry "skip" must be reject or escalate`},
		{"onExpiry without expires", "{turns: 1, approval: {onExpiry: reject}}", "a.yaml:4: limits.soft.approval.onExpiry needs expires"},
		{"few approvers", "{turns: 1, approval: {approvers: [ann], quorum: 2}}", "a.yaml:4: limits.soft.approval.quorum is 2, but the number of approvers is 1"},
		{"not keys", "50000", "a.yaml:4: limits.soft must have keys, not be a number"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := agents.Parse("a.yaml", []byte("name: a\nmodel: p/m\nlimits:\n  soft: "+tt.soft+"\n  cost: 1.25\n"))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
	_, err := agents.Parse("a.yaml", []byte("name: a\nmodel: p/m\nsteps: [{name: x, agent: {limits: {soft: {turns: 1}}}}]\n"))
	if err == nil || !strings.Contains(err.Error(), "limits.soft must be in the agent's own limits, not in a step") {
		t.Errorf("soft limits of a step: got %v, want an error", err)
	}
	for _, d := range []agents.Approval{{Tools: []string{"x"}}, {When: "true"}} {
		made := &agents.Definition{Name: "a", Model: "p/m", Limits: agents.Limits{Soft: &agents.SoftLimits{Turns: 1, Approval: d}}}
		if err := made.Validate(); err == nil || !strings.Contains(err.Error(), "limits.soft.approval must have neither tools nor when") {
			t.Errorf("soft limits with the rule %+v: got %v, want an error", d, err)
		}
	}
}

func TestSchemaHasSoftLimits(t *testing.T) {
	t.Parallel()
	soft := readSchema(t, schemaFile).Properties["limits"].Properties["soft"]
	if diff := cmp.Diff(fields(reflect.TypeFor[agents.SoftLimits]()), soft.names()); diff != "" {
		t.Errorf("keys of soft limits (-struct +schema):\n%s", diff)
	}
	schema := compileSchema(t, schemaFile)
	for text, valid := range map[string]bool{
		withSoft:                                true,
		least + "limits: {soft: {turns: 1}}\n":  true,
		least + "limits: {soft: {}}\n":          false,
		least + "limits: {soft: {tokens: 0}}\n": false,
		least + "limits: {soft: {turns: 1, approval: {tools: [x]}}}\n":                                   false,
		least + "limits: {soft: {turns: 1, approval: {expires: 1h, onExpiry: fail}}}\n":                  false,
		least + "steps: [{name: x, agent: {instructions: go, limits: {turns: 1, soft: {tokens: 1}}}}]\n": false,
		least + "steps: [{name: x, agent: {instructions: go, limits: {turns: 1}}}]\n":                    true,
	} {
		if err := schema.Validate(value(t, text)); (err == nil) != valid {
			t.Errorf("%s: schema: %v, want valid: %t", text, err, valid)
		}
		if _, err := agents.Parse("a.yaml", []byte(text)); (err == nil) != valid {
			t.Errorf("%s: parse: %v, want valid: %t", text, err, valid)
		}
	}
}
