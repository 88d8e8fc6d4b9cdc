package runs

import (
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
)

// Budget is what a run has used of its [Limits], also in the AG-UI runs before it that worked on
// the same input.
type Budget struct {
	// Deadline is when the run's duration is over. Waiting moves it.
	Deadline time.Time `json:"deadline"`
	// Usage is what the model calls of this run used, with those of its subagents and branches that
	// have ended.
	Usage []Usage    `json:"usage,omitempty"`
	Spent PriorUsage `json:"spent,omitzero"`
}

// Begin starts the clock of a run without predecessors.
func (b *Budget) Begin(l Limits, now time.Time) { *b = Budget{Deadline: now.Add(l.Duration)} }

// Restart takes over what the runs before have used, if this run continues their work. It does not
// after an input that abandoned all interrupts: that input begins other work.
func (b *Budget) Restart(l Limits, s *Interrupts) {
	switch {
	case s == nil || s.Spent == nil || !slices.ContainsFunc(s.Items, Interrupt.isKept):
	case l.Soft == nil:
		b.Spent.Day = s.Spent.Day
	default:
		b.Spent = *s.Spent
		b.Extend(-b.Spent.Duration)
	}
}

// Extend moves the deadline.
func (b *Budget) Extend(by time.Duration) { b.Deadline = b.Deadline.Add(by) }

// IsOverdue reports whether the run's time is over.
func (b *Budget) IsOverdue(now time.Time) bool { return !now.Before(b.Deadline) }

// Use counts model calls.
func (b *Budget) Use(u Usage) { b.Usage = addUsage(b.Usage, u) }

// tokens returns how many were used for the input.
func (b *Budget) tokens() int64 { return b.Spent.Tokens + Tokens(b.Usage) }

// cost returns what was spent for the input, in millionths.
func (b *Budget) cost() int64 {
	cost, _ := Cost(b.Usage)
	return b.Spent.Cost + cost
}

// spent returns what was done for the input until now.
func (b *Budget) spent(l Limits, now time.Time) PriorUsage {
	s := b.Spent
	s.Tokens, s.Cost = b.tokens(), b.cost()
	s.Duration = l.Duration - b.Deadline.Sub(now)
	return s
}

// Carried returns what the run after an interrupt takes over; nil = nothing.
func (b *Budget) Carried(l Limits, now time.Time) *PriorUsage {
	switch {
	case l.Soft != nil:
		used := b.spent(l, now)
		return &used
	case b.Spent.Day != (DayAllowance{}):
		return &PriorUsage{Day: b.Spent.Day}
	}
	return nil
}

// Overspent is why the run ends if more tokens or money were used than the limits allow; nil = they
// were not.
func (b *Budget) Overspent(l Limits) *pipeline.Failure {
	switch {
	case b.tokens() > l.Tokens:
		return &pipeline.Failure{Code: CodeLimitTokens, Message: fmt.Sprintf("the run reached its limit of %d tokens", l.Tokens)}
	case l.Cost > 0 && b.cost() > l.Cost:
		return &pipeline.Failure{Code: CodeLimitCost, Message: fmt.Sprintf("the run reached its cost limit of %s", agents.Money(l.Cost))}
	}
	return nil
}

// Remaining narrows the limits of a child to its share of what the run has left. running are the
// limits of the running children, which may use all of them. n children, the one included, divide
// the rest; at least 1. A child has no soft limits: it asks nobody.
func (b *Budget) Remaining(l, child Limits, running []Limits, n int) Limits {
	tokens, cost := l.Tokens-b.tokens(), l.Cost-b.cost()
	for _, other := range running {
		tokens, cost = tokens-other.Tokens, cost-other.Cost
	}
	child.Soft = nil
	child.Tokens = max(1, min(child.Tokens, tokens/int64(n)))
	if l.Cost > 0 {
		if child.Cost == 0 {
			child.Cost = l.Cost
		}
		child.Cost = max(1, min(child.Cost, cost/int64(n)))
	}
	return child
}

// Exceeded returns the first soft limit that was passed; nil = none was. Tokens and cost may be
// used up to their limit, like those of hard limits; a turn or a duration beyond the limit does not
// begin.
func (b *Budget) Exceeded(l Limits, now time.Time) *ExceededLimit {
	if l.Soft == nil {
		return nil
	}
	used, allowed, soft := b.spent(l, now), b.Spent.Allowed, *l.Soft
	for _, x := range []struct {
		code                      string
		soft, allowed, used, most int64
		usable                    bool
	}{
		{CodeLimitTokens, soft.Tokens, allowed.Tokens, used.Tokens, l.Tokens, true},
		{CodeLimitCost, soft.Cost, allowed.Cost, used.Cost, l.Cost, true},
		{CodeLimitTurns, int64(soft.Turns), int64(allowed.Turns), int64(used.Turns), int64(l.Turns), false},
		{CodeLimitDuration, int64(soft.Duration), int64(allowed.Duration), int64(used.Duration), int64(l.Duration), false},
	} {
		until := max(x.soft, x.allowed)
		if x.soft == 0 || x.used < until || x.used == until && x.usable {
			continue
		}
		next := &ExceededLimit{Code: x.code, Used: x.used, Allowed: x.used + x.soft}
		if x.most > x.used {
			next.Allowed = min(next.Allowed, x.most)
		}
		return next
	}
	return nil
}

// Allow raises a soft limit to the amount that approvers have allowed.
func (b *Budget) Allow(x ExceededLimit) {
	allowed := &b.Spent.Allowed
	switch x.Code {
	case CodeLimitTokens:
		allowed.Tokens = x.Allowed
	case CodeLimitCost:
		allowed.Cost = x.Allowed
	case CodeLimitTurns:
		allowed.Turns = int(x.Allowed)
	case CodeLimitDuration:
		allowed.Duration = time.Duration(x.Allowed)
	case CodeBudgetExceeded:
		b.Spent.Day.allow(x)
	}
}
