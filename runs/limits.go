package runs

import (
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
)

// DayAllowance is how much a tenant may have used on a day, as people have allowed one run. It says nothing about another day.
type DayAllowance struct {
	Date   string `json:"date,omitempty"` // in UTC, such as 2026-01-31
	Tokens int64  `json:"tokens,omitempty"`
	Cost   int64  `json:"cost,omitempty"`
}

// allow adds what people have approved.
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

// Limits end a run that goes too far, with an error whose code names the limit.
type Limits struct {
	Turns         int           `json:"turns"`
	Tokens        int64         `json:"tokens"`
	Duration      time.Duration `json:"duration"`
	ParallelTools int           `json:"parallelTools"`
	// Cost is in millionths of the currency of the worker's prices; 0 = whatever it costs.
	Cost int64 `json:"cost,omitempty"`
	// Soft is set in those of a run that asks people before it goes further.
	Soft *SoftLimits `json:"soft,omitempty"`
}

// SoftLimits are the limits beyond which people are asked; zero = nobody is. Units are those of [Limits].
type SoftLimits struct {
	Turns    int           `json:"turns,omitempty"`
	Tokens   int64         `json:"tokens,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
	Cost     int64         `json:"cost,omitempty"`
}

// ExceededLimit is a soft limit that was passed. Its figures have the units of the limit.
type ExceededLimit struct {
	// Code is that of the limit, with which the run ends if people do not let it go on.
	Code string `json:"code"`
	// Limit and Date are set where it is a tenant's day that was used up: [pipeline.LimitTokensPerDay] or
	// [pipeline.LimitCostPerDay], and the day in UTC. The figures are those of all its runs.
	Limit string `json:"limit,omitempty"`
	Date  string `json:"date,omitempty"`
	Used  int64  `json:"used"`
	// Allowed is how far the run may go if they do.
	Allowed int64 `json:"allowed"`
}

// LimitInterrupt asks to put the question of an excess into the log. The answer is a ModelAnswer with its call.
type LimitInterrupt struct {
	Step
	// Beginning is set in a run's first step.
	Beginning
	Exceeded ExceededLimit `json:"exceeded"`
}

// ScopeLimit marks what is said about limits: it is for people, and no model hears it.
const ScopeLimit = "limit"

// LimitsOfRun are those of an agent whose run it is.
func LimitsOfRun(l agents.Limits) Limits {
	limits := LimitsOfSubagent(l)
	if s := l.Soft; s != nil {
		limits.Soft = &SoftLimits{Turns: s.Turns, Tokens: s.Tokens, Duration: s.Duration, Cost: int64(s.Cost)}
	}
	return limits
}

// CountsCost tells whether it has to be known what models cost.
func (l Limits) CountsCost() bool { return l.Cost > 0 || l.Soft != nil && l.Soft.Cost > 0 }

// LimitsOfSubagent are those of an agent that works for another one: it asks nobody whether it may go on.
func LimitsOfSubagent(l agents.Limits) Limits {
	return Limits{Turns: l.Turns, Tokens: l.Tokens, Duration: l.Duration, ParallelTools: l.ParallelTools, Cost: int64(l.Cost)}
}
