package stream

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/perdure/perdure/agui"
)

// Description is what the index of threads says of a thread's content, so that people find it. Who
// may read the thread may read it.
type Description struct {
	// DerivedTitle is made of the first message of a user (see Title). ModelTitle was written by a
	// model, and replaces it. GivenTitle was set by a caller, and replaces both; "" = none.
	DerivedTitle string `json:"derivedTitle,omitempty"`
	ModelTitle   string `json:"modelTitle,omitempty"`
	GivenTitle   string `json:"givenTitle,omitempty"`
	// Metadata are the names and values that callers have set.
	Metadata map[string]string `json:"metadata,omitempty"`
}

// Title returns the title of the thread; "" = it has none.
func (d *Description) Title() string { return cmp.Or(d.GivenTitle, d.ModelTitle, d.DerivedTitle) }

// updated returns the description after a run began whose input says next. The derived title stays,
// because it is of the first message.
func (d Description) updated(next Description) Description {
	d.DerivedTitle = cmp.Or(d.DerivedTitle, next.DerivedTitle)
	d.ModelTitle = cmp.Or(d.ModelTitle, next.ModelTitle)
	if len(next.Metadata) > 0 {
		all := maps.Clone(d.Metadata)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, next.Metadata)
		maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
		// Two inputs may exceed the bound together. Then the last one counts.
		if len(all) > MaxMetadata {
			all = next.Metadata
		}
		d.Metadata = all
	}
	return d
}

// Bounds of a thread's metadata: entries, and the bytes of a name and of a value.
const (
	MaxMetadata      = 16
	MaxMetadataName  = 64
	MaxMetadataValue = 256
)

// Description returns what an input says of its thread: a title from its messages, and the metadata
// in forwardedProps.perdure.metadata, which the API has validated.
func (in *Input) Description() Description {
	var d Description
	for _, m := range in.Accepted.Tail {
		if m.Message != nil && d.DerivedTitle == "" {
			d.DerivedTitle = Title([]agui.Message{*m.Message})
		}
	}
	var props struct {
		Perdure struct {
			Metadata map[string]string `json:"metadata"`
		} `json:"perdure"`
	}
	if len(in.Input.ForwardedProps) > 0 && json.Unmarshal(in.Input.ForwardedProps, &props) == nil {
		d.Metadata = props.Perdure.Metadata
	}
	return d
}

// description returns what the first record of a thread says of it.
func (r *Record) description(ctx context.Context) (d Description, err error) {
	switch r.Kind {
	case KindProposal:
		var in Input
		err = r.Result(ctx, &in)
		d = in.Description()
	case KindFork:
		var fork Fork
		err = r.Result(ctx, &fork)
		d.DerivedTitle = fork.Title
	}
	return d, err
}

// WaitKind is the kind of what a thread waits for.
type WaitKind string

// The kinds.
const (
	WaitApproval   WaitKind = "approval"
	WaitQuestion   WaitKind = "question"
	WaitLimit      WaitKind = "limit"
	WaitClientTool WaitKind = "client_tool"
	WaitTimer      WaitKind = "timer"
	WaitEvent      WaitKind = "event"
)

// WaitKinds are all kinds.
var WaitKinds = []WaitKind{WaitApproval, WaitQuestion, WaitLimit, WaitClientTool, WaitTimer, WaitEvent}

// waitsAfter returns the kinds of what a thread waits for after a run with this last event, in the
// order of WaitKinds.
func waitsAfter(last agui.Event) []WaitKind {
	e, ok := last.(*agui.RunFinished)
	if !ok || e.Outcome == nil {
		return nil
	}
	open := map[WaitKind]bool{WaitClientTool: len(e.Outcome.PendingToolCallIDs) > 0}
	for _, interrupt := range e.Outcome.Interrupts {
		open[waitKindOf(interrupt)] = true
	}
	return slices.DeleteFunc(slices.Clone(WaitKinds), func(k WaitKind) bool { return !open[k] })
}

// waitKindOf returns the kind of an interrupt. One with invalid metadata counts as an approval.
func waitKindOf(interrupt agui.Interrupt) WaitKind {
	if wait := WaitIn(interrupt); wait != nil {
		return wait.Kind
	}
	if _, isQuestion := interrupt.Metadata[MetadataQuestion]; isQuestion {
		return WaitQuestion
	}
	if source, err := ApprovalSourceOf(interrupt); err == nil && source != nil && source.Limit {
		return WaitLimit
	}
	return WaitApproval
}

// ThreadUsage is what the runs of a thread have used, of all models. Counts that providers do not
// report are zero.
type ThreadUsage struct {
	InputTokens  int64 `json:"inputTokens,omitempty"`
	OutputTokens int64 `json:"outputTokens,omitempty"`
	TotalTokens  int64 `json:"totalTokens,omitempty"`
	// Cost is in millionths of Currency; 0 = no model has a price.
	Cost     int64  `json:"cost,omitempty"`
	Currency string `json:"currency,omitempty"`
}

// plus returns the sum of two usages. The currency is that of the later one.
func (u ThreadUsage) plus(later ThreadUsage) ThreadUsage {
	u.InputTokens += later.InputTokens
	u.OutputTokens += later.OutputTokens
	u.TotalTokens += later.TotalTokens
	u.Cost += later.Cost
	if later.Currency != "" {
		u.Currency = later.Currency
	}
	return u
}

// MetadataCost is the key of the cost in the metadata of a run's last event: AG-UI's usage has
// tokens only.
const MetadataCost = "perdure.cost"

// usageIn returns the usage in the last event of a run.
func usageIn(last agui.Event) ThreadUsage {
	var models []agui.TokenUsage
	var metadata agui.Metadata
	switch e := last.(type) {
	case *agui.RunFinished:
		models, metadata = e.Usage, e.Metadata
	case *agui.RunError:
		models, metadata = e.Usage, e.Metadata
	}
	var sum ThreadUsage
	for _, m := range models {
		input, output := count(m.InputTokens), count(m.OutputTokens)
		sum.InputTokens, sum.OutputTokens = sum.InputTokens+input, sum.OutputTokens+output
		if m.TotalTokens != nil {
			sum.TotalTokens += *m.TotalTokens
		} else {
			sum.TotalTokens += input + output
		}
	}
	var cost struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	}
	if raw := metadata[MetadataCost]; raw != nil && json.Unmarshal(raw, &cost) == nil {
		sum.Cost, sum.Currency = int64(math.Round(cost.Amount*1e6)), cost.Currency
	}
	return sum
}

// count returns a count; nil = unknown is 0.
func count(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
