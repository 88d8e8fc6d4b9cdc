package runs_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// budgetWith returns the budget of a run that has used tokens and cost, after turns model calls. Its
// time is over an hour after decidedAt.
func budgetWith(turns int, tokens, cost int64) runs.Budget {
	b := runs.Budget{Deadline: decidedAt.Add(time.Hour), Spent: runs.PriorUsage{Turns: turns}}
	b.Use(runs.Usage{Provider: "p", Model: "m", Total: &tokens, Cost: &cost})
	return b
}

// TestExceededSoftLimit: tokens and cost may reach a soft limit, turns and duration may not. The
// next limit is as far away again, but not above the hard limit.
func TestExceededSoftLimit(t *testing.T) {
	t.Parallel()
	hard := runs.Limits{Turns: 10, Tokens: 1000, Cost: 1000, Duration: 2 * time.Hour}
	hour := int64(time.Hour)
	for name, c := range map[string]struct {
		soft    runs.SoftLimits
		budget  runs.Budget
		allowed runs.SoftLimits // by approvers before
		want    *runs.ExceededLimit
	}{
		"no soft limit of the kind":      {runs.SoftLimits{Cost: 500}, budgetWith(9, 999, 0), runs.SoftLimits{}, nil},
		"tokens at the limit":            {runs.SoftLimits{Tokens: 100}, budgetWith(1, 100, 0), runs.SoftLimits{}, nil},
		"tokens beyond the limit":        {runs.SoftLimits{Tokens: 100}, budgetWith(1, 101, 0), runs.SoftLimits{}, &runs.ExceededLimit{Code: runs.CodeLimitTokens, Used: 101, Allowed: 201}},
		"tokens below the allowance":     {runs.SoftLimits{Tokens: 100}, budgetWith(1, 150, 0), runs.SoftLimits{Tokens: 200}, nil},
		"tokens beyond the allowance":    {runs.SoftLimits{Tokens: 100}, budgetWith(1, 201, 0), runs.SoftLimits{Tokens: 200}, &runs.ExceededLimit{Code: runs.CodeLimitTokens, Used: 201, Allowed: 301}},
		"tokens near the hard limit":     {runs.SoftLimits{Tokens: 900}, budgetWith(1, 950, 0), runs.SoftLimits{}, &runs.ExceededLimit{Code: runs.CodeLimitTokens, Used: 950, Allowed: 1000}},
		"cost at the limit":              {runs.SoftLimits{Cost: 100}, budgetWith(1, 0, 100), runs.SoftLimits{}, nil},
		"cost beyond the limit":          {runs.SoftLimits{Cost: 100}, budgetWith(1, 0, 130), runs.SoftLimits{}, &runs.ExceededLimit{Code: runs.CodeLimitCost, Used: 130, Allowed: 230}},
		"turns below the limit":          {runs.SoftLimits{Turns: 3}, budgetWith(2, 0, 0), runs.SoftLimits{}, nil},
		"turns at the limit":             {runs.SoftLimits{Turns: 3}, budgetWith(3, 0, 0), runs.SoftLimits{}, &runs.ExceededLimit{Code: runs.CodeLimitTurns, Used: 3, Allowed: 6}},
		"duration below the limit":       {runs.SoftLimits{Duration: time.Hour + 1}, budgetWith(0, 0, 0), runs.SoftLimits{}, nil},
		"duration at the limit":          {runs.SoftLimits{Duration: time.Hour}, budgetWith(0, 0, 0), runs.SoftLimits{}, &runs.ExceededLimit{Code: runs.CodeLimitDuration, Used: hour, Allowed: 2 * hour}},
		"tokens come first":              {runs.SoftLimits{Tokens: 1, Turns: 1}, budgetWith(1, 2, 0), runs.SoftLimits{}, &runs.ExceededLimit{Code: runs.CodeLimitTokens, Used: 2, Allowed: 3}},
		"an allowance of another figure": {runs.SoftLimits{Tokens: 100}, budgetWith(1, 101, 0), runs.SoftLimits{Turns: 200}, &runs.ExceededLimit{Code: runs.CodeLimitTokens, Used: 101, Allowed: 201}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := hard
			limits.Soft = &c.soft
			c.budget.Spent.Allowed = c.allowed
			if diff := cmp.Diff(c.want, c.budget.Exceeded(limits, decidedAt)); diff != "" {
				t.Errorf("exceeded limit (-want +got):\n%s", diff)
			}
		})
	}
	budget := budgetWith(9, 999, 999)
	if got := budget.Exceeded(hard, decidedAt); got != nil {
		t.Errorf("exceeded limit without soft limits = %+v, want none", got)
	}
}

// TestAllowRaisesLimit: an approved figure is the new limit of its kind, and no other.
func TestAllowRaisesLimit(t *testing.T) {
	t.Parallel()
	const day = "2026-01-31"
	for name, c := range map[string]struct {
		exceeded runs.ExceededLimit
		want     runs.PriorUsage
	}{
		"tokens":         {runs.ExceededLimit{Code: runs.CodeLimitTokens, Allowed: 7}, runs.PriorUsage{Allowed: runs.SoftLimits{Tokens: 7}}},
		"cost":           {runs.ExceededLimit{Code: runs.CodeLimitCost, Allowed: 7}, runs.PriorUsage{Allowed: runs.SoftLimits{Cost: 7}}},
		"turns":          {runs.ExceededLimit{Code: runs.CodeLimitTurns, Allowed: 7}, runs.PriorUsage{Allowed: runs.SoftLimits{Turns: 7}}},
		"duration":       {runs.ExceededLimit{Code: runs.CodeLimitDuration, Allowed: 7}, runs.PriorUsage{Allowed: runs.SoftLimits{Duration: 7}}},
		"tokens per day": {runs.ExceededLimit{Code: runs.CodeBudgetExceeded, Limit: pipeline.LimitTokensPerDay, Date: day, Allowed: 7}, runs.PriorUsage{Day: runs.DayAllowance{Date: day, Tokens: 7}}},
		"cost per day":   {runs.ExceededLimit{Code: runs.CodeBudgetExceeded, Limit: pipeline.LimitCostPerDay, Date: day, Allowed: 7}, runs.PriorUsage{Day: runs.DayAllowance{Date: day, Cost: 7}}},
	} {
		var b runs.Budget
		b.Allow(c.exceeded)
		if diff := cmp.Diff(c.want, b.Spent); diff != "" {
			t.Errorf("%s: allowances (-want +got):\n%s", name, diff)
		}
	}
}

// TestOverspentHardLimit: a run may reach its hard limits of tokens and cost. A cost limit of 0 is
// none.
func TestOverspentHardLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tokens, cost, costLimit int64
		want                    string
	}{
		"at the limits":        {100, 50, 50, ""},
		"tokens":               {101, 50, 50, runs.CodeLimitTokens},
		"cost":                 {100, 51, 50, runs.CodeLimitCost},
		"both":                 {101, 51, 50, runs.CodeLimitTokens},
		"without a cost limit": {100, 51, 0, ""},
	} {
		b := budgetWith(1, c.tokens, c.cost)
		got := ""
		if failure := b.Overspent(runs.Limits{Tokens: 100, Cost: c.costLimit}); failure != nil {
			got = failure.Code
		}
		if got != c.want {
			t.Errorf("%s: code = %q, want %q", name, got, c.want)
		}
	}
}

// TestRemainingLimitsOfChild: a child has at most its share of what its run and the running children
// leave, at least 1, and no soft limits.
func TestRemainingLimitsOfChild(t *testing.T) {
	t.Parallel()
	running := []runs.Limits{{Tokens: 10, Cost: 20}, {Tokens: 20, Cost: 10}}
	for name, c := range map[string]struct {
		run, child, want runs.Limits
		running          []runs.Limits
		n                int
	}{
		"the child's own":       {run: runs.Limits{Tokens: 100, Cost: 90}, child: runs.Limits{Tokens: 10, Cost: 5}, want: runs.Limits{Tokens: 10, Cost: 5}, n: 1},
		"what the run has":      {run: runs.Limits{Tokens: 100, Cost: 90}, child: runs.Limits{Tokens: 1000, Cost: 1000}, want: runs.Limits{Tokens: 60, Cost: 60}, n: 1},
		"a cost of the run":     {run: runs.Limits{Tokens: 100, Cost: 90}, child: runs.Limits{Tokens: 10}, want: runs.Limits{Tokens: 10, Cost: 60}, n: 1},
		"no cost of the run":    {run: runs.Limits{Tokens: 100}, child: runs.Limits{Tokens: 10, Cost: 5}, want: runs.Limits{Tokens: 10, Cost: 5}, n: 1},
		"nothing is left":       {run: runs.Limits{Tokens: 40, Cost: 30}, child: runs.Limits{Tokens: 10, Cost: 5}, want: runs.Limits{Tokens: 1, Cost: 1}, n: 1},
		"soft limits":           {run: runs.Limits{Tokens: 100}, child: runs.Limits{Tokens: 10, Soft: &runs.SoftLimits{Tokens: 5}}, want: runs.Limits{Tokens: 10}, n: 1},
		"its share":             {run: runs.Limits{Tokens: 100, Cost: 90}, child: runs.Limits{Tokens: 1000, Cost: 1000}, want: runs.Limits{Tokens: 20, Cost: 20}, n: 3},
		"beside running ones":   {run: runs.Limits{Tokens: 100, Cost: 90}, child: runs.Limits{Tokens: 1000, Cost: 1000}, running: running, want: runs.Limits{Tokens: 15, Cost: 15}, n: 2},
		"running ones have all": {run: runs.Limits{Tokens: 60, Cost: 50}, child: runs.Limits{Tokens: 1000, Cost: 1000}, running: running, want: runs.Limits{Tokens: 1, Cost: 1}, n: 1},
	} {
		b := budgetWith(1, 40, 30)
		if diff := cmp.Diff(c.want, b.Remaining(c.run, c.child, c.running, c.n)); diff != "" {
			t.Errorf("%s: limits of the child (-want +got):\n%s", name, diff)
		}
	}
}
