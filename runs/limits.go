package runs

import (
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
)

// DayAllowance is how much of its tenant's day approvers have allowed one run to use. It holds for
// that day only.
type DayAllowance struct {
	Date   string `json:"date,omitempty"` // in UTC, such as 2026-01-31
	Tokens int64  `json:"tokens,omitempty"`
	Cost   int64  `json:"cost,omitempty"`
}

// allow sets the amount that approvers have allowed. An allowance for another day replaces the
// earlier one.
func (d *DayAllowance) allow(x ExceededLimit) {
	if d.Date != x.Date {
		*d = DayAllowance{Date: x.Date}
	}
	if x.Limit == pipeline.LimitCostPerDay {
		d.Cost = x.Allowed
		return
	}
	d.Tokens = x.Allowed
}

// Limits end a run that exceeds them, with an error whose code names the limit.
type Limits struct {
	Turns         int           `json:"turns"`
	Tokens        int64         `json:"tokens"`
	Duration      time.Duration `json:"duration"`
	ParallelTools int           `json:"parallelTools"`
	// Cost is in millionths of the currency of the worker's prices; 0 = no limit.
	Cost int64 `json:"cost,omitempty"`
	// Soft are the limits beyond which approvers are asked; nil = there are none.
	Soft *SoftLimits `json:"soft,omitempty"`
}

// SoftLimits are limits beyond which approvers are asked, in the units of [Limits]; zero members
// have no limit.
type SoftLimits struct {
	Turns    int           `json:"turns,omitempty"`
	Tokens   int64         `json:"tokens,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
	Cost     int64         `json:"cost,omitempty"`
}

// ExceededLimit is a soft limit that a run has passed. Its amounts have the units of the limit.
type ExceededLimit struct {
	// Code is the error code with which the run ends without an approval.
	Code string `json:"code"`
	// Limit and Date are set if a tenant's day is used up: [pipeline.LimitTokensPerDay] or
	// [pipeline.LimitCostPerDay], and the day in UTC. The amounts then count all runs of the
	// tenant.
	Limit string `json:"limit,omitempty"`
	Date  string `json:"date,omitempty"`
	Used  int64  `json:"used"`
	// Allowed is the limit after an approval.
	Allowed int64 `json:"allowed"`
}

// LimitInterrupt is the input of ActivityLimitInterrupt, which records the question whether a run
// may continue. The output is a ModelAnswer with the call that approvers decide about.
type LimitInterrupt struct {
	Step
	// Beginning is set in a run's first step.
	Beginning
	Exceeded ExceededLimit `json:"exceeded"`
}

// ScopeLimit marks messages about limits: they are for approvers, and no model is sent them.
const ScopeLimit = "limit"

// LimitsOfRun returns the limits of a run of an agent.
func LimitsOfRun(l agents.Limits) Limits {
	limits := LimitsOfSubagent(l)
	if s := l.Soft; s != nil {
		limits.Soft = &SoftLimits{Turns: s.Turns, Tokens: s.Tokens, Duration: s.Duration, Cost: int64(s.Cost)}
	}
	return limits
}

// CountsCost reports whether models must have a price.
func (l Limits) CountsCost() bool { return l.Cost > 0 || l.Soft != nil && l.Soft.Cost > 0 }

// LimitsOfSubagent returns the limits of an agent that works for another one. They have no soft
// limits: a subagent does not ask approvers whether it may continue.
func LimitsOfSubagent(l agents.Limits) Limits {
	return Limits{Turns: l.Turns, Tokens: l.Tokens, Duration: l.Duration, ParallelTools: l.ParallelTools, Cost: int64(l.Cost)}
}
