package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/durations"
)

// approvalJSON is the JSON of an Approval: durations as text, as in files, and no defaults.
type approvalJSON struct {
	Tools          []string         `json:"tools,omitempty"`
	When           string           `json:"when,omitempty"`
	Approvers      []string         `json:"approvers,omitempty"`
	Quorum         int              `json:"quorum,omitempty"`
	NotByRequester bool             `json:"notByRequester,omitempty"`
	Remind         durationJSON     `json:"remind,omitempty"`
	Escalate       []escalationJSON `json:"escalate,omitempty"`
	Expires        durationJSON     `json:"expires,omitempty"`
	OnExpiry       string           `json:"onExpiry,omitempty"`
}

// escalationJSON is the JSON of an Escalation.
type escalationJSON struct {
	After durationJSON `json:"after"`
	To    []string     `json:"to"`
}

// durationJSON is a duration as text, such as 24h0m0s; "" = zero.
type durationJSON string

// textOf returns a duration as text.
func textOf(d time.Duration) durationJSON {
	if d == 0 {
		return ""
	}
	return durationJSON(d.String())
}

// into parses the text; "" leaves *into unchanged.
func (d durationJSON) into(into *time.Duration) (err error) {
	if d != "" {
		*into, err = durations.Parse(string(d))
	}
	return err
}

// MarshalJSON writes durations as text, such as 24h0m0s.
func (a Approval) MarshalJSON() ([]byte, error) { return json.Marshal(a.json()) }

// json returns the rule without defaults.
func (a Approval) json() approvalJSON {
	out := approvalJSON{
		Tools: a.Tools, When: a.When, Approvers: a.Approvers, NotByRequester: a.NotByRequester,
		Remind: textOf(a.Remind), Expires: textOf(a.Expires), OnExpiry: a.OnExpiry,
	}
	if a.Quorum > 1 {
		out.Quorum = a.Quorum
	}
	for _, e := range a.Escalate {
		out.Escalate = append(out.Escalate, escalationJSON{After: textOf(e.After), To: e.To})
	}
	return out
}

// UnmarshalJSON parses the output of MarshalJSON, and refuses unknown members.
func (a *Approval) UnmarshalJSON(data []byte) error {
	var in approvalJSON
	if err := decodeStrictly(data, &in); err != nil {
		return fmt.Errorf("approvals: %w", err)
	}
	rule, err := in.rule()
	*a = rule
	return err
}

// rule returns the Approval.
func (in approvalJSON) rule() (Approval, error) {
	a := Approval{
		Tools: in.Tools, When: in.When, Approvers: in.Approvers, Quorum: in.Quorum, NotByRequester: in.NotByRequester, OnExpiry: in.OnExpiry,
	}
	err := errors.Join(in.Remind.into(&a.Remind), in.Expires.into(&a.Expires))
	for _, e := range in.Escalate {
		escalation := Escalation{To: e.To}
		err = errors.Join(err, e.After.into(&escalation.After))
		a.Escalate = append(a.Escalate, escalation)
	}
	if err != nil {
		return Approval{}, fmt.Errorf("approvals: %w", err)
	}
	return a, nil
}
