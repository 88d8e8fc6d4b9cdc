package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/agents/expression"
)

// This file has the JSON of steps, which is a part of the canonical JSON of definitions. It has the
// keys of files, durations as text, and no members with their default.

// stepJSON is the JSON of a Step, with the keys in the order of the canonical JSON.
type stepJSON struct {
	Name       string         `json:"name,omitempty"`
	When       string         `json:"when,omitempty"`
	Agent      *AgentStep     `json:"agent,omitempty"`
	Tool       string         `json:"tool,omitempty"`
	Approve    *ApproveStep   `json:"approve,omitempty"`
	Parallel   *ParallelStep  `json:"parallel,omitempty"`
	Map        *MapStep       `json:"map,omitempty"`
	Route      []Case         `json:"route,omitempty"`
	Loop       *LoopStep      `json:"loop,omitempty"`
	Set        []Op           `json:"set,omitempty"`
	Steps      []Step         `json:"steps,omitempty"`
	Input      string         `json:"input,omitempty"`
	Output     *Output        `json:"output,omitempty"`
	Args       map[string]any `json:"args,omitempty"`
	Visible    *bool          `json:"visible,omitempty"` // nil = true
	Retry      *Retry         `json:"retry,omitempty"`
	Timeout    durationJSON   `json:"timeout,omitempty"`
	OnError    OnError        `json:"onError,omitzero"`
	Compensate *Step          `json:"compensate,omitempty"`
}

// MarshalJSON returns the JSON with durations such as 1m30s.
func (s Step) MarshalJSON() ([]byte, error) {
	var visible *bool
	if s.Hidden {
		visible = new(bool)
	}
	return plainJSON(stepJSON{
		Name:       s.Name,
		When:       s.When,
		Agent:      s.Agent,
		Tool:       s.Tool,
		Approve:    s.Approve,
		Parallel:   s.Parallel,
		Map:        s.Map,
		Route:      s.Route,
		Loop:       s.Loop,
		Set:        s.Set,
		Steps:      s.Steps,
		Input:      s.Input,
		Output:     s.Output,
		Args:       s.canonicalArgs(),
		Visible:    visible,
		Retry:      s.Retry,
		Timeout:    textOf(s.Timeout),
		OnError:    s.OnError,
		Compensate: s.Compensate,
	})
}

// UnmarshalJSON parses the output of MarshalJSON, and refuses unknown members.
func (s *Step) UnmarshalJSON(data []byte) error {
	var in stepJSON
	if err := decodeStrictly(data, &in); err != nil {
		return fmt.Errorf("steps: %w", err)
	}
	*s = Step{
		Name:       in.Name,
		When:       in.When,
		Agent:      in.Agent,
		Tool:       in.Tool,
		Approve:    in.Approve,
		Parallel:   in.Parallel,
		Map:        in.Map,
		Route:      in.Route,
		Loop:       in.Loop,
		Set:        in.Set,
		Steps:      in.Steps,
		Input:      in.Input,
		Output:     in.Output,
		Args:       decodeExact(data, "args"),
		Hidden:     in.Visible != nil && !*in.Visible,
		Retry:      in.Retry,
		OnError:    in.OnError,
		Compensate: in.Compensate,
	}
	return in.Timeout.into(&s.Timeout)
}

// plainJSON encodes a value without escaping <, > and & in strings. An encoder escapes them in the
// output of a MarshalJSON unless that MarshalJSON and all encoders around it disable it. The
// canonical JSON needs one form, so all of them use plainJSON.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// decodeExact returns a member that is an object, with exact numbers: encoding/json would round
// them to float64.
func decodeExact(data []byte, member string) map[string]any {
	object, _ := expression.Decode(data).(map[string]any)
	value, _ := object[member].(map[string]any)
	return value
}

// agentStepJSON is the JSON of an AgentStep that is defined inline.
type agentStepJSON struct {
	Model        modelsJSON    `json:"model,omitempty"`
	Fallback     *fallbackJSON `json:"fallback,omitempty"`
	Reasoning    Reasoning     `json:"reasoning,omitzero"`
	Instructions string        `json:"instructions,omitempty"`
	Tools        []string      `json:"tools,omitempty"`
	State        State         `json:"state,omitzero"`
	Limits       Limits        `json:"limits,omitzero"`
}

// MarshalJSON returns the name of another agent as text.
func (a AgentStep) MarshalJSON() ([]byte, error) {
	if a.Name != "" {
		return plainJSON(a.Name)
	}
	return plainJSON(agentStepJSON{
		Model: modelsOf(a.Model, a.Fallback), Fallback: a.Fallback.json(), Reasoning: a.Reasoning, Instructions: a.Instructions, Tools: a.Tools, State: a.State, Limits: a.Limits,
	})
}

// UnmarshalJSON reads the output of MarshalJSON, and refuses other fields.
func (a *AgentStep) UnmarshalJSON(data []byte) error {
	var name string
	if json.Unmarshal(data, &name) == nil {
		*a = AgentStep{Name: name}
		return nil
	}
	var in agentStepJSON
	if err := decodeStrictly(data, &in); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	*a = AgentStep{
		Fallback: in.Fallback.fallback(), Reasoning: in.Reasoning, Instructions: in.Instructions, Tools: in.Tools, State: in.State, Limits: in.Limits,
	}
	in.Model.split(&a.Model, &a.Fallback)
	return nil
}

// outputJSON is the JSON of an Output.
type outputJSON struct {
	Schema  json.RawMessage `json:"schema,omitempty"`
	Value   string          `json:"value,omitempty"`
	Repairs *int            `json:"repairs,omitempty"`
	Native  *bool           `json:"native,omitempty"`
}

// MarshalJSON returns the schema with its keys sorted: their order has no meaning.
func (o Output) MarshalJSON() ([]byte, error) {
	if o.schemaErr != nil {
		return nil, o.schemaErr
	}
	out := outputJSON{Value: o.Value, Native: o.Native}
	if len(o.Schema) > 0 {
		sorted, err := plainJSON(expression.Decode(o.Schema))
		if err != nil {
			return nil, err
		}
		out.Schema = sorted
	}
	if n := o.MaxRepairs(); n != defaultRepairs {
		out.Repairs = &n
	}
	return plainJSON(out)
}

// UnmarshalJSON reads the output of MarshalJSON, and refuses other fields.
func (o *Output) UnmarshalJSON(data []byte) error {
	var in outputJSON
	if err := decodeStrictly(data, &in); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	*o = Output{Schema: in.Schema, Value: in.Value, Repairs: in.Repairs, Native: in.Native}
	return nil
}

// approveJSON has the rule's keys at the top level.
type approveJSON struct {
	Message        string           `json:"message,omitempty"`
	Args           map[string]any   `json:"args,omitempty"`
	Approvers      []string         `json:"approvers,omitempty"`
	Quorum         int              `json:"quorum,omitempty"`
	NotByRequester bool             `json:"notByRequester,omitempty"`
	Remind         durationJSON     `json:"remind,omitempty"`
	Escalate       []escalationJSON `json:"escalate,omitempty"`
	Expires        durationJSON     `json:"expires,omitempty"`
	OnExpiry       string           `json:"onExpiry,omitempty"`
}

// MarshalJSON returns the members that files have.
func (a ApproveStep) MarshalJSON() ([]byte, error) {
	r := a.Rule.json()
	return plainJSON(approveJSON{
		Message: a.Message, Args: a.Args, Approvers: r.Approvers, Quorum: r.Quorum, NotByRequester: r.NotByRequester,
		Remind: r.Remind, Escalate: r.Escalate, Expires: r.Expires, OnExpiry: r.OnExpiry,
	})
}

// UnmarshalJSON reads the output of MarshalJSON, and refuses other fields.
func (a *ApproveStep) UnmarshalJSON(data []byte) error {
	var in approveJSON
	if err := decodeStrictly(data, &in); err != nil {
		return fmt.Errorf("approve: %w", err)
	}
	rule, err := approvalJSON{
		Approvers: in.Approvers, Quorum: in.Quorum, NotByRequester: in.NotByRequester,
		Remind: in.Remind, Escalate: in.Escalate, Expires: in.Expires, OnExpiry: in.OnExpiry,
	}.rule()
	*a = ApproveStep{Message: in.Message, Args: decodeExact(data, "args"), Rule: rule}
	return err
}

// parallelJSON is the JSON of a ParallelStep with options.
type parallelJSON struct {
	Steps       []Step `json:"steps"`
	Concurrency int    `json:"concurrency,omitempty"`
	OnError     string `json:"onError,omitempty"`
}

// MarshalJSON returns the members that files have, without defaults.
func (p ParallelStep) MarshalJSON() ([]byte, error) {
	return plainJSON(parallelJSON{Steps: p.Steps, Concurrency: p.Concurrency, OnError: omitFail(p.OnError)})
}

// UnmarshalJSON reads the output of MarshalJSON, and refuses other fields.
func (p *ParallelStep) UnmarshalJSON(data []byte) error {
	var in parallelJSON
	if err := decodeStrictly(data, &in); err != nil {
		return fmt.Errorf("parallel: %w", err)
	}
	*p = ParallelStep(in)
	return nil
}

// omitFail returns "" for the default OnErrorFail.
func omitFail(onError string) string {
	if onError == OnErrorFail {
		return ""
	}
	return onError
}

// mapJSON is the JSON of a MapStep.
type mapJSON struct {
	Items       string `json:"items"`
	As          string `json:"as,omitempty"`
	Concurrency int    `json:"concurrency,omitempty"`
	OnError     string `json:"onError,omitempty"`
	Steps       []Step `json:"steps"`
}

// MarshalJSON returns the members that files have, without defaults.
func (m MapStep) MarshalJSON() ([]byte, error) {
	out := mapJSON{Items: m.Items, As: m.As, Concurrency: m.Concurrency, OnError: omitFail(m.OnError), Steps: m.Steps}
	if out.As == defaultItem {
		out.As = ""
	}
	if out.Concurrency == defaultConcurrency {
		out.Concurrency = 0
	}
	return plainJSON(out)
}

// UnmarshalJSON reads the output of MarshalJSON, and refuses other fields.
func (m *MapStep) UnmarshalJSON(data []byte) error {
	var in mapJSON
	if err := decodeStrictly(data, &in); err != nil {
		return fmt.Errorf("map: %w", err)
	}
	*m = MapStep(in)
	return nil
}

// opJSON is the JSON of an Op.
type opJSON struct {
	Op    string          `json:"op,omitempty"`
	Path  string          `json:"path"`
	From  string          `json:"from,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// MarshalJSON returns a value only if the operation has one.
func (o Op) MarshalJSON() ([]byte, error) {
	out := opJSON{Op: o.Op, Path: o.Path, From: o.From}
	if o.hasValue() {
		value, err := plainJSON(o.Value)
		if err != nil {
			return nil, err
		}
		out.Value = value
	}
	return plainJSON(out)
}

// UnmarshalJSON reads the output of MarshalJSON, and refuses other fields.
func (o *Op) UnmarshalJSON(data []byte) error {
	var in opJSON
	if err := decodeStrictly(data, &in); err != nil {
		return fmt.Errorf("set: %w", err)
	}
	*o = Op{Op: in.Op, Path: in.Path, From: in.From, Value: expression.Decode(in.Value)}
	return nil
}

// hasValue reports whether the operation has a value; null is one.
func (o Op) hasValue() bool {
	return o.Op == "" || o.Op == "add" || o.Op == "replace" || o.Op == "test"
}

// retryJSON is the JSON of a Retry.
type retryJSON struct {
	Attempts int          `json:"attempts"`
	Interval durationJSON `json:"interval,omitempty"`
	Backoff  float64      `json:"backoff,omitempty"`
}

// MarshalJSON returns the members that files have, without defaults.
func (r Retry) MarshalJSON() ([]byte, error) {
	out := retryJSON{Attempts: r.Attempts, Interval: textOf(r.Interval), Backoff: r.Backoff}
	if r.Interval == time.Second {
		out.Interval = ""
	}
	if r.Backoff == defaultBackoff {
		out.Backoff = 0
	}
	return plainJSON(out)
}

// UnmarshalJSON reads the output of MarshalJSON, and refuses other fields.
func (r *Retry) UnmarshalJSON(data []byte) error {
	var in retryJSON
	if err := decodeStrictly(data, &in); err != nil {
		return fmt.Errorf("retry: %w", err)
	}
	*r = Retry{Attempts: in.Attempts, Backoff: in.Backoff}
	return in.Interval.into(&r.Interval)
}

// MarshalJSON returns a word, or an object with steps.
func (o OnError) MarshalJSON() ([]byte, error) {
	switch {
	case o.Steps != nil:
		return plainJSON(map[string]any{"steps": o.Steps})
	case o.Continue:
		return plainJSON(OnErrorContinue)
	}
	return plainJSON(OnErrorFail)
}

// UnmarshalJSON reads the output of MarshalJSON, and refuses other fields.
func (o *OnError) UnmarshalJSON(data []byte) error {
	var word string
	if json.Unmarshal(data, &word) == nil {
		*o = OnError{Continue: word == OnErrorContinue}
		if word != OnErrorContinue && word != OnErrorFail {
			return fmt.Errorf("onError: %.80q must be fail or continue, or have steps", word)
		}
		return nil
	}
	var in struct {
		Steps []Step `json:"steps"`
	}
	if err := decodeStrictly(data, &in); err != nil {
		return fmt.Errorf("onError: %w", err)
	}
	*o = OnError{Steps: in.Steps}
	return nil
}
