package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/activities/prompt"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file counts what model calls use, also those of attempts that never returned. Every call is
// counted once, by what the log has of it:
//
//   - An attempt notes its call in the log when it has a connection to the provider, before it
//     sends the request.
//   - If the attempt finishes, its done record has the usage that the provider reported.
//   - If it does not finish, the next owner of the lane counts the call by the note: the next
//     attempt of the step, the advance after a step that failed, the end of the subagent, or the
//     end of the run.
//
// All of them compute the same usage from the same records, so a retry changes nothing.
// stream.Log.AttemptOutputs returns what the log has of each attempt on a lane.

// callNote is what the log knows of a model call that has not finished. It is stored as JSON in
// records of the attempt.
type callNote struct {
	// Model is the model as the agent names it, with its provider.
	Model string `json:"model"`
	// Usage is the last usage that the provider has reported when the note was written. Input is an
	// estimate until the provider reports it. Output is a lower bound, except in the last note.
	Usage runs.Usage `json:"usage"`
	// Free tells that the call costs nothing: the provider refused the request, or never got it.
	Free bool `json:"free,omitempty"`
	// Complete tells that Usage is the provider's report of the whole answer. The attempt failed
	// after the answer had ended, so the log does not have all of the answer.
	Complete bool `json:"complete,omitempty"`
	// Waits tells that the call waits for its admission: no request was sent.
	Waits bool `json:"waits,omitempty"`
	// Reported is the usage that a remote agent has reported for its run, which has failed. Free does
	// not concern it.
	Reported []runs.Usage `json:"reported,omitempty"`
	// Metered tells that the attempt has recorded its metrics, so the next attempt must not.
	Metered bool `json:"metered,omitempty"`
}

// estimatedUsage returns the usage of a call whose answer was cut or not reported. text is that of
// the answer as far as the attempt, or the log, has it. The part that is estimated is marked as
// such: all of this call.
func (a *Activities) estimatedUsage(note callNote, text string) runs.Usage {
	u := note.Usage
	output := max(countOrZero(u.Output), prompt.TextTokens(text))
	total := countOrZero(u.Input) + output
	u.Output, u.Total, u.Calls = &output, &total, 1
	u = a.withCost(note.Model, u)
	u.Estimated = &runs.Estimate{Calls: 1, Input: countOrZero(u.Input), Output: output, Cost: countOrZero(u.Cost)}
	return u
}

// unfinishedCallUsage returns the usage of the model call, or of the remote run, of an attempt that did
// not finish. It is nil if there is nothing to count: the attempt finished, made no call, or its call
// was free.
func (a *Activities) unfinishedCallUsage(attempt stream.AttemptOutput) ([]runs.Usage, error) {
	if attempt.Done != nil || attempt.Note == nil {
		return nil, nil
	}
	var note callNote
	if err := json.Unmarshal(attempt.Note, &note); err != nil {
		return nil, fmt.Errorf("activities: note of a model call: %w", err)
	}
	switch {
	case len(note.Reported) > 0:
		return note.Reported, nil
	case note.Free:
		return nil, nil
	case note.Complete:
		u := note.Usage
		u.Calls = 1
		return []runs.Usage{a.withCost(note.Model, u)}, nil
	}
	return []runs.Usage{a.estimatedUsage(note, attempt.Text)}, nil
}

// meterUnfinished records the metrics of a call whose worker died before it could. attempts are in
// their order; only the last one is considered, because each attempt before it was recorded by the
// next one. Metrics are best effort, so errors are ignored.
func (a *Activities) meterUnfinished(ctx context.Context, attempts []stream.AttemptOutput) {
	if len(attempts) == 0 {
		return
	}
	last := attempts[len(attempts)-1]
	usage, err := a.unfinishedCallUsage(last)
	var note callNote
	if err != nil || len(usage) != 1 || json.Unmarshal(last.Note, &note) != nil || note.Metered {
		return
	}
	u := usage[0]
	provider, name, _ := strings.Cut(note.Model, "/")
	telemetry.CountCut(ctx, telemetry.ChatRequest{Provider: provider, Model: name},
		telemetry.ChatResponse{Model: u.Model, Input: u.Input, Output: u.Output, Cost: u.Cost, Currency: a.currency(), Estimated: u.Estimated != nil})
}

// stepUsage is the usage of one step, with all its attempts and summaries.
type stepUsage struct {
	step  string
	usage []runs.Usage
}

// stepUsages returns the usage of the steps with model calls on a lane, from the records after
// Place.After and Place.Since. A finished step is counted by the answer in its done record, another
// one by the notes of its attempts and by its summaries. The lane must have no active writer, or
// the result changes.
func (a *Activities) stepUsages(ctx context.Context, p stream.Place) ([]stepUsage, error) {
	attempts, err := a.Log.AttemptOutputs(ctx, p)
	// An attempt takes the lane before it has a summary made, so without attempts there are no
	// summaries.
	if err != nil || len(attempts) == 0 {
		return nil, err
	}
	summaries, err := a.Log.AttemptOutputs(ctx, summaryPlace(p))
	if err != nil {
		return nil, err
	}
	a.meterUnfinished(ctx, attempts)
	var steps []stepUsage
	for _, attempt := range attempts {
		// The attempts of a step are counted together, with the first of them.
		if slices.ContainsFunc(steps, func(known stepUsage) bool { return known.step == attempt.Step }) {
			continue
		}
		selectStep := func(all []stream.AttemptOutput, step string) []stream.AttemptOutput {
			return slices.DeleteFunc(slices.Clone(all), func(other stream.AttemptOutput) bool { return other.Step != step })
		}
		usage, err := a.usageOfStep(ctx, selectStep(attempts, attempt.Step), selectStep(summaries, attempt.Step+stepSummary))
		if err != nil {
			return nil, err
		}
		steps = append(steps, stepUsage{attempt.Step, usage})
	}
	return steps, nil
}

// usageOfStep returns the usage of a step, from its attempts and from the attempts at its summary.
// It is nil for a step that calls no model, such as an advance.
func (a *Activities) usageOfStep(ctx context.Context, attempts, summaries []stream.AttemptOutput) ([]runs.Usage, error) {
	callsModel := len(summaries) > 0 || slices.ContainsFunc(attempts, func(s stream.AttemptOutput) bool { return s.Note != nil })
	done := slices.IndexFunc(attempts, func(s stream.AttemptOutput) bool { return s.Done != nil })
	switch {
	case !callsModel:
		return nil, nil
	case done >= 0:
		answer, err := recordedModelAnswer(ctx, attempts[done].Done)
		return answerUsage(answer), err
	}
	return a.unfinishedUsage(ctx, attempts, summaries)
}

// unfinishedUsage returns the usage of the attempts that did not finish, and of summaries, finished
// or not. It also records the metrics of a summary whose worker died.
func (a *Activities) unfinishedUsage(ctx context.Context, attempts, summaries []stream.AttemptOutput) ([]runs.Usage, error) {
	a.meterUnfinished(ctx, summaries)
	var usage []runs.Usage
	for _, s := range attempts {
		attemptUsage, err := a.unfinishedCallUsage(s)
		if err != nil {
			return nil, err
		}
		usage = append(usage, attemptUsage...)
	}
	for _, s := range summaries {
		summaryUsage, err := a.summaryUsage(ctx, s)
		if err != nil {
			return nil, err
		}
		usage = append(usage, summaryUsage...)
	}
	return usage, nil
}

// summaryUsage returns the usage of one attempt at a summary; nil = none.
func (a *Activities) summaryUsage(ctx context.Context, attempt stream.AttemptOutput) ([]runs.Usage, error) {
	if attempt.Done != nil {
		var stored summary
		err := decodeKept(ctx, attempt.Done, &stored)
		return []runs.Usage{stored.Usage}, err
	}
	return a.unfinishedCallUsage(attempt)
}

// meterPreviousAttempt records the metrics of the attempt at the same step that died before this
// one. attempt is the caller's own: its records are left out.
func (a *Activities) meterPreviousAttempt(ctx context.Context, p stream.Place, attempt *stream.Attempt) error {
	attempts, err := a.Log.AttemptOutputs(ctx, p)
	if err != nil {
		return err
	}
	a.meterUnfinished(ctx, othersOfStep(attempts, p.Step, attempt.Writer()))
	return nil
}

// othersOfStep returns the attempts at a step, except for that of a writer. It changes the list.
func othersOfStep(attempts []stream.AttemptOutput, step, writer string) []stream.AttemptOutput {
	return slices.DeleteFunc(attempts, func(s stream.AttemptOutput) bool { return s.Step != step || s.Writer == writer })
}

// otherUsage returns the usage of an attempt's step without the attempt's own call: of earlier
// attempts that did not finish, and of summaries. It reads the log also after ctx has ended,
// because the answer is written then, too.
func (a *Activities) otherUsage(ctx context.Context, p stream.Place, attempt *stream.Attempt) ([]runs.Usage, error) {
	ctx, cancel := contextAfter(ctx)
	defer cancel()
	attempts, err := a.Log.AttemptOutputs(ctx, p)
	if err != nil {
		return nil, err
	}
	summaries, err := a.Log.AttemptOutputs(ctx, summaryPlace(p))
	if err != nil {
		return nil, err
	}
	attempts = othersOfStep(attempts, p.Step, attempt.Writer())
	summaries = slices.DeleteFunc(summaries, func(s stream.AttemptOutput) bool { return s.Step != p.Step+stepSummary })
	usage, err := a.unfinishedUsage(ctx, attempts, summaries)
	return runs.Sum(usage), err
}

// unreported returns the usage of model calls on a lane that no answer has reported to the
// workflow, and adds it to the tenant's day. The caller must have taken the lane over, so that no
// attempt adds to it. The ledger counts each step once, so a retry is harmless.
func (a *Activities) unreported(ctx context.Context, p stream.Place) ([]runs.Usage, error) {
	steps, err := a.stepUsages(ctx, p)
	if err != nil {
		return nil, err
	}
	var all []runs.Usage
	for _, s := range steps {
		if err := a.addToLedger(ctx, p.Run, s.step, s.usage); err != nil {
			return nil, err
		}
		all = append(all, s.usage...)
	}
	return runs.Sum(all), nil
}

// answerUsage returns all usage that an answer reports: of its own call, earlier attempts and
// summaries.
func answerUsage(answer runs.ModelAnswer) []runs.Usage {
	return append([]runs.Usage{answer.Usage}, answer.OtherUsage...)
}

// stepSummary ends the ID of the step that makes a summary for a model call. Its attempts are on
// the lane of summaries.
const stepSummary = "/summary"

// summaryPlace returns where the model call at p writes its summary: on the lane of summaries of
// the same agent. Records up to p.After belong to earlier steps, so they mark where this use of the
// lane begins.
func summaryPlace(p stream.Place) stream.Place {
	p.Lane, p.Since, p.After, p.Step = p.Lane.Summary(), max(p.Since, p.After), 0, p.Step+stepSummary
	return p
}

// countOrZero returns a count; 0 = it is unknown.
func countOrZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
