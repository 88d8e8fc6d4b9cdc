package trace

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// unitOn returns the unit of a record's step, which may be new.
func (f *Fold) unitOn(ctx context.Context, rec *stream.Record) (*unit, error) {
	if u := f.units[rec.Lane]; u != nil && u.step == rec.Step {
		return u, nil
	}
	return f.beginUnit(ctx, rec)
}

// beginUnit begins the unit of a record's step.
func (f *Fold) beginUnit(ctx context.Context, rec *stream.Record) (*unit, error) {
	u := &unit{step: rec.Step}
	f.units[rec.Lane] = u
	switch {
	case rec.Lane.IsAgentLane() && path.Base(rec.Step) == stepModel:
		a := f.agentOn(rec.Lane)
		f.beginTurn(a, rec)
		u.kind, u.node = unitModel, f.begin(rec, rec.Time, a.turn, KindModel, "model")
		a.model = u.node
	case rec.Lane.IsAgentLane():
		u.kind = unitOther
		f.closeTurn(f.agentOn(rec.Lane), rec.Time)
	case strings.HasSuffix(rec.Step, stepSummary):
		u.kind, u.node = unitSummary, f.begin(rec, rec.Time, f.agentOn(toolOwner(rec.Lane)).callParent(), KindModel, "summary")
	default:
		return u, f.beginCall(ctx, rec, u)
	}
	return u, nil
}

// addDone ends a unit.
func (f *Fold) addDone(ctx context.Context, rec *stream.Record) error {
	u, err := f.unitOn(ctx, rec)
	if err != nil {
		return err
	}
	delete(f.units, rec.Lane)
	var result doneResult
	if err := rec.Result(ctx, &result); err != nil {
		return err
	}
	var earlier []*stream.Record
	if u.attempt != nil {
		at := milliseconds(rec.Time)
		earlier = u.attempt.records
		u.attempt.endWait(at)
		u.attempt.EndedAt, u.attempt.Status, u.attempt.records = &at, StatusFinished, nil
	}
	if u.node != nil {
		u.node.span.Retry = nil
		f.touch(u.node, rec)
	}
	var events [][]byte
	if u.kind != unitModel && u.kind != unitSummary { // those of model calls may be many, and none is needed
		if events, err = eventsOf(ctx, append(earlier, rec)); err != nil {
			return err
		}
	}
	if result.Decided != nil {
		f.resolveInterrupts(rec.Time, *result.Decided)
	}
	switch u.kind {
	case unitModel:
		err = f.endModel(rec, u, &result)
	case unitSummary:
		err = f.endSummary(rec, u, &result)
	case unitTool:
		err = f.endTool(ctx, rec, u, &result)
	case unitOther:
		f.addCalls(f.agentOn(rec.Lane), &result)
		if u.node != nil {
			f.end(u.node, rec.Time, StatusFinished)
		}
		err = f.addAdvance(rec, &result, events)
	case unitEnd:
	}
	for _, raw := range events {
		switch agui.TypeOf(raw) {
		case agui.EventSubagentFinished, agui.EventSubagentError:
			if err == nil {
				err = f.endSubagent(rec, raw)
			}
		}
	}
	return err
}

// addSupersede ends a unit whose lane was taken over: because it failed, or because the run ends.
// With a result, readers keep what the attempt has streamed.
func (f *Fold) addSupersede(ctx context.Context, rec *stream.Record) error {
	u := f.units[rec.Lane]
	if u == nil {
		return nil
	}
	delete(f.units, rec.Lane)
	why := lostWorker
	if rec.HasResult() || f.cancelRequested {
		why = nil
	}
	if rec.HasResult() && u.attempt != nil {
		u.attempt.records = nil
	}
	if err := f.supersede(ctx, u, rec, why); err != nil {
		return err
	}
	f.endUnit(u, rec.Time)
	return nil
}

// closeUnits ends the units that are open at the end of the run.
func (f *Fold) closeUnits(ctx context.Context, rec *stream.Record) error {
	why := lostWorker
	if f.run.Status == StatusCancelled {
		why = nil
	}
	for _, u := range f.units {
		if err := f.supersede(ctx, u, rec, why); err != nil {
			return err
		}
		f.endUnit(u, rec.Time)
	}
	f.units = map[stream.Lane]*unit{}
	return nil
}

// endUnit ends the span of a unit whose last attempt did not finish.
func (f *Fold) endUnit(u *unit, at time.Time) {
	switch {
	case u.node == nil, u.kind == unitEnd:
	case u.attempt == nil || u.attempt.Status == StatusCancelled:
		f.end(u.node, at, StatusCancelled)
	default:
		f.fail(u.node, at, u.attempt.Error)
	}
}
