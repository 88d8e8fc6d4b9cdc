package activities

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/control/usage"
	"github.com/perdure/perdure/runs"
)

// This file counts runs and titles for the report of usage.

// countTimeout bounds the count of a run. The next run of the thread waits for it.
const countTimeout = 5 * time.Second

// countRun adds a run that has its terminal record to the report of usage, with in.Usage as the
// terminal record has it. The ledger counts each run once, so a retry is harmless. A failure is
// logged, and the run is then missing in the report: the run has ended, and its thread must not wait
// for the ledger.
func (a *Activities) countRun(ctx context.Context, in runs.FinishInput, outcome runs.Outcome) {
	if a.Usage == nil {
		return
	}
	count, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTimeout)
	defer cancel()
	ended, err := a.endedRun(count, in)
	if err == nil {
		ended.Outcome = outcome
		err = a.Usage.Count(count, ended)
	}
	if err != nil {
		logger(ctx).Warn("the usage of a run could not be counted, and is missing in the report of usage", "error", err)
	}
}

// countTitle adds the model call for the title of a thread to the report of usage, on the day at
// which it ended. It does not count as a run. A failure is logged, as by countRun.
func (a *Activities) countTitle(ctx context.Context, in runs.TitleInput, at time.Time, used []runs.Usage) {
	if a.Usage == nil || len(used) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	err := a.Usage.Count(ctx, usage.Run{Run: runOf(in.Run), Part: in.ID, Agent: in.Agent, Ended: at, Usage: used, Currency: a.currency()})
	if err != nil {
		logger(ctx).Warn("the usage of a title could not be counted, and is missing in the report of usage", "error", err)
	}
}

// endedRun returns a run as the ledger counts it, with the times of its first and last record.
func (a *Activities) endedRun(ctx context.Context, in runs.FinishInput) (usage.Run, error) {
	ended, err := usage.EndedRun(ctx, a.Log, runOf(in.Run))
	ended.Agent, ended.Usage, ended.Currency = in.Agent, in.Usage, a.currency()
	return ended, err
}
