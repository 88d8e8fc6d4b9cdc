package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/perdure/perdure/activities/prompt"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/llm"
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
	// Metered tells that the attempt has recorded its metrics, so its successor must not.
	Metered bool `json:"metered,omitempty"`
}

// modelCall is one request to a model, and what is known of its cost. The caller calls stream once,
// then end once, from one goroutine. Only the hooks of trace run on other goroutines, those of the
// HTTP transport; they touch the atomic fields and the attempt. The caller owns the attempt.
type modelCall struct {
	activities *Activities
	attempt    *stream.Attempt
	chat       *telemetry.Chat
	note       callNote
	// finish is the last chunk; nil = the answer is not complete. said is all text, reasoning and
	// tool calls so far, for an estimate. received tells that the provider has sent something, so
	// the call is not free.
	finish   *llm.Finish
	said     strings.Builder
	received bool

	// noted tells that the log may have the note. dialed and sent tell whether an HTTP request
	// wanted a connection and was written; models without HTTP set neither.
	noted        atomic.Bool
	dialed, sent atomic.Bool
}

// newModelCall returns a call of a model, which named gives as agents do ("openai/gpt-5"). The call
// writes its notes with attempt. end ends chat.
func (a *Activities) newModelCall(attempt *stream.Attempt, named string, chat *telemetry.Chat) *modelCall {
	return &modelCall{activities: a, attempt: attempt, chat: chat, note: callNote{Model: named}}
}

// stream makes the call and hands each chunk to hear. It returns when the completion has ended, or
// with the error of the model, of hear, or of the log. The log has the note before an HTTP request
// is sent. For a model that sends none, the note is set with the first chunk.
func (c *modelCall) stream(ctx context.Context, model llm.Model, req *llm.Request, hear func(llm.Chunk) error) error {
	provider, _, _ := strings.Cut(c.note.Model, "/")
	input := prompt.RequestTokens(req)
	c.note.Usage = runs.Usage{Provider: provider, Model: modelName(req.Model), Input: &input}
	if ctx.Err() != nil {
		// Nothing is sent to the provider with a context that has ended.
		c.note.Free = true
		return context.Cause(ctx)
	}
	for chunk, err := range model.Stream(c.trace(ctx), req) {
		if err != nil {
			return err
		}
		if err := c.addChunk(chunk); err != nil {
			return err
		}
		if err := hear(chunk); err != nil {
			return err
		}
	}
	return nil
}

// trace returns a context with hooks that note whether an HTTP request leaves the process, and hold
// the request back until the log has the note. Otherwise a crash after the request would leave a
// billed call that nobody counts. A model that sends no HTTP request calls no hook. The errors are
// ignored: Flush fails only if ctx or the attempt ends, which ends the request as well.
func (c *modelCall) trace(ctx context.Context) context.Context {
	// The hooks run on other goroutines, so they get a copy.
	note := c.note
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { c.dialed.Store(true) },
		GotConn: func(httptrace.GotConnInfo) {
			c.noted.Store(true)
			_ = errors.Join(c.attempt.Note(note), c.attempt.Flush(ctx))
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				c.sent.Store(true)
			}
		},
	})
}

// addChunk takes what the usage depends on from a chunk. It sets the note with the first chunk, if
// no HTTP hook has.
func (c *modelCall) addChunk(chunk llm.Chunk) error {
	c.received = true
	if !c.noted.Swap(true) {
		if err := c.attempt.Note(c.note); err != nil {
			return err
		}
	}
	switch chunk := chunk.(type) {
	case llm.UsageReport:
		return c.report(chunk)
	case llm.Finish:
		c.finish = &chunk
	case llm.TextDelta:
		c.said.WriteString(chunk.Text)
	case llm.ReasoningDelta:
		c.said.WriteString(chunk.Text)
	case llm.ToolCallStart:
		c.said.WriteString(chunk.Name)
	case llm.ToolCallDelta:
		c.said.WriteString(chunk.Arguments)
	}
	c.chat.Chunk()
	return nil
}

// report takes over what the provider has counted so far. It writes a note if the input or the
// model changed. It writes none for the output, which grows with each report: the successor of a
// dead attempt estimates the output from the text in the log.
func (c *modelCall) report(r llm.UsageReport) error {
	estimate := c.note.Usage.Input
	known := c.note.Usage
	c.note.Usage = usageOf(llm.Finish{Usage: r.Usage, Model: r.Model, Provider: r.Provider})
	// A total of an incomplete answer would be taken for its usage.
	c.note.Usage.Total = nil
	if c.note.Usage.Input == nil {
		c.note.Usage.Input = estimate
	}
	if value(known.Input) == value(c.note.Usage.Input) && known.Model == c.note.Usage.Model {
		return nil
	}
	return c.attempt.Note(c.note)
}

// end returns the usage of the call, after stream has returned err, and ends the telemetry of the
// call. The usage is the provider's report, or an estimate if there is none, or zero if the call
// was free. finishes tells that the attempt goes on to write its done record. Otherwise end writes
// a last note, which makes the count exact: it has the output and whether the call was free.
func (c *modelCall) end(ctx context.Context, err error, finishes bool) runs.Usage {
	c.note.Free = c.note.Free || c.free(err)
	var u runs.Usage
	switch {
	case c.isReported():
		u = usageOf(*c.finish)
		c.note.Usage, c.note.Complete = u, true
		u.Calls = 1
		u = c.activities.priced(c.note.Model, u)
	case !c.note.Free:
		u = c.activities.estimated(c.note, c.said.String())
		c.note.Usage.Output = u.Output
	}
	r := telemetry.ChatResponse{Model: u.Model, Currency: c.activities.currency(), Error: kindOf(err), Estimated: u.Estimated != nil}
	if c.finish != nil {
		r.Finish = string(c.finish.Reason)
	}
	// The attempt that took the lane over counts a fenced call, and records its metrics.
	if !errors.Is(err, stream.ErrFenced) {
		r.Input, r.Output, r.Cost = u.Input, u.Output, u.Cost
		c.note.Metered = true
	}
	c.chat.End(r)
	if !finishes && (c.noted.Load() || !c.note.Free) {
		// Without the last note the call is counted by an estimate from the note before.
		last, cancel := contextAfter(ctx)
		defer cancel()
		_ = errors.Join(c.attempt.Note(c.note), c.attempt.Flush(last))
	}
	return u
}

// isReported reports whether the answer is complete and the provider has reported its usage: the
// total, or input and output. Some model servers report nothing; their answers are estimated like
// those that were cut.
func (c *modelCall) isReported() bool {
	if c.finish == nil {
		return false
	}
	u := usageOf(*c.finish)
	return u.Total != nil || u.Input != nil && u.Output != nil
}

// free reports whether a call that ended with err costs nothing: the provider refused the request,
// or it was never sent.
func (c *modelCall) free(err error) bool {
	if err == nil || c.received {
		return false
	}
	if c.dialed.Load() && !c.sent.Load() {
		return true
	}
	var refusal *llm.Error
	return errors.As(err, &refusal) && refusal.Refused()
}

// estimated returns the usage of a call whose answer was cut or not reported. said is the text of
// the answer as far as the attempt, or the log, has it. The part that is estimated is marked as
// such: all of this call.
func (a *Activities) estimated(n callNote, text string) runs.Usage {
	u := n.Usage
	output := max(value(u.Output), prompt.TextTokens(text))
	total := value(u.Input) + output
	u.Output, u.Total, u.Calls = &output, &total, 1
	u = a.priced(n.Model, u)
	u.Estimated = &runs.Estimate{Calls: 1, Input: value(u.Input), Output: output, Cost: value(u.Cost)}
	return u
}

// usageOfCutCall returns the usage of the model call of an attempt that did not finish. ok is false
// if there is nothing to count: the attempt finished, made no call, or its call was free.
func (a *Activities) usageOfCutCall(s stream.AttemptOutput) (u runs.Usage, ok bool, err error) {
	if s.Done != nil || s.Note == nil {
		return u, false, nil
	}
	var n callNote
	if err := json.Unmarshal(s.Note, &n); err != nil {
		return u, false, fmt.Errorf("activities: note of a model call: %w", err)
	}
	switch {
	case n.Free:
		return u, false, nil
	case n.Complete:
		u = n.Usage
		u.Calls = 1
		return a.priced(n.Model, u), true, nil
	}
	return a.estimated(n, s.Text), true, nil
}

// meterCut records the metrics of a call whose worker died before it could. dead are attempts in
// their order; only the last one is considered, because each attempt before it was recorded by its
// successor. Metrics are best effort, so errors are ignored.
func (a *Activities) meterCut(ctx context.Context, dead []stream.AttemptOutput) {
	if len(dead) == 0 {
		return
	}
	last := dead[len(dead)-1]
	u, ok, err := a.usageOfCutCall(last)
	var n callNote
	if err != nil || !ok || json.Unmarshal(last.Note, &n) != nil || n.Metered {
		return
	}
	provider, name, _ := strings.Cut(n.Model, "/")
	telemetry.CountCut(ctx, telemetry.ChatRequest{Provider: provider, Model: name},
		telemetry.ChatResponse{Model: u.Model, Input: u.Input, Output: u.Output, Cost: u.Cost, Currency: a.currency(), Estimated: u.Estimated != nil})
}

// stepUsage is the usage of one step, with all its attempts and summaries.
type stepUsage struct {
	step string
	used []runs.Usage
}

// stepsOn returns the usage of the steps with model calls on a lane, from the records after
// Place.After and Place.Since. A finished step is counted by the answer in its done record, another
// one by the notes of its attempts and by its summaries. The lane must have no active writer, or
// the result changes.
func (a *Activities) stepsOn(ctx context.Context, p stream.Place) ([]stepUsage, error) {
	spoken, err := a.Log.AttemptOutputs(ctx, p)
	// An attempt takes the lane before it has a summary made, so without attempts there are no
	// summaries.
	if err != nil || len(spoken) == 0 {
		return nil, err
	}
	summaries, err := a.Log.AttemptOutputs(ctx, summaryPlace(p))
	if err != nil {
		return nil, err
	}
	a.meterCut(ctx, spoken)
	var steps []stepUsage
	for _, s := range spoken {
		// The attempts of a step are counted together, with the first of them.
		if slices.ContainsFunc(steps, func(known stepUsage) bool { return known.step == s.Step }) {
			continue
		}
		of := func(all []stream.AttemptOutput, step string) []stream.AttemptOutput {
			return slices.DeleteFunc(slices.Clone(all), func(other stream.AttemptOutput) bool { return other.Step != step })
		}
		used, err := a.stepUsed(ctx, of(spoken, s.Step), of(summaries, s.Step+stepSummary))
		if err != nil {
			return nil, err
		}
		steps = append(steps, stepUsage{s.Step, used})
	}
	return steps, nil
}

// stepUsed returns the usage of a step, from its attempts and from the attempts at its summary. It
// is nil for a step that calls no model, such as an advance.
func (a *Activities) stepUsed(ctx context.Context, attempts, summaries []stream.AttemptOutput) ([]runs.Usage, error) {
	calls := len(summaries) > 0 || slices.ContainsFunc(attempts, func(s stream.AttemptOutput) bool { return s.Note != nil })
	done := slices.IndexFunc(attempts, func(s stream.AttemptOutput) bool { return s.Done != nil })
	switch {
	case !calls:
		return nil, nil
	case done >= 0:
		answer, err := recordedModelAnswer(ctx, attempts[done].Done)
		return usageIn(answer), err
	}
	return a.cutAndSummaries(ctx, attempts, summaries)
}

// cutAndSummaries returns the usage of the attempts that did not finish, and of summaries, finished
// or not. It also records the metrics of a summary whose worker died.
func (a *Activities) cutAndSummaries(ctx context.Context, attempts, summaries []stream.AttemptOutput) ([]runs.Usage, error) {
	a.meterCut(ctx, summaries)
	var used []runs.Usage
	for _, s := range attempts {
		u, ok, err := a.usageOfCutCall(s)
		if err != nil {
			return nil, err
		}
		if ok {
			used = append(used, u)
		}
	}
	for _, s := range summaries {
		more, err := a.summaryUsage(ctx, s)
		if err != nil {
			return nil, err
		}
		used = append(used, more...)
	}
	return used, nil
}

// summaryUsage returns the usage of one attempt at a summary; nil = none.
func (a *Activities) summaryUsage(ctx context.Context, s stream.AttemptOutput) ([]runs.Usage, error) {
	if s.Done != nil {
		var made summary
		err := recordedKept(ctx, s.Done, &made)
		return []runs.Usage{made.Usage}, err
	}
	u, ok, err := a.usageOfCutCall(s)
	if err != nil || !ok {
		return nil, err
	}
	return []runs.Usage{u}, nil
}

// meterBefore records the metrics of the attempt at the same step that died before this one.
// attempt is the caller's own: its records are left out.
func (a *Activities) meterBefore(ctx context.Context, p stream.Place, attempt *stream.Attempt) error {
	spoken, err := a.Log.AttemptOutputs(ctx, p)
	if err != nil {
		return err
	}
	a.meterCut(ctx, slices.DeleteFunc(spoken, func(s stream.AttemptOutput) bool { return s.Step != p.Step || s.Writer == attempt.Writer() }))
	return nil
}

// usedBefore returns the usage of an attempt's step without the attempt's own call: of earlier
// attempts that did not finish, and of summaries. It reads the log also after ctx has ended,
// because the answer is written then, too.
func (a *Activities) usedBefore(ctx context.Context, p stream.Place, attempt *stream.Attempt) ([]runs.Usage, error) {
	ctx, cancel := contextAfter(ctx)
	defer cancel()
	spoken, err := a.Log.AttemptOutputs(ctx, p)
	if err != nil {
		return nil, err
	}
	summaries, err := a.Log.AttemptOutputs(ctx, summaryPlace(p))
	if err != nil {
		return nil, err
	}
	spoken = slices.DeleteFunc(spoken, func(s stream.AttemptOutput) bool { return s.Step != p.Step || s.Writer == attempt.Writer() })
	summaries = slices.DeleteFunc(summaries, func(s stream.AttemptOutput) bool { return s.Step != p.Step+stepSummary })
	used, err := a.cutAndSummaries(ctx, spoken, summaries)
	return runs.Sum(used), err
}

// unreported returns the usage of model calls on a lane that no answer has reported to the
// workflow, and adds it to the tenant's day. The caller must have taken the lane over, so that no
// attempt adds to it. The ledger counts each step once, so a retry is harmless.
func (a *Activities) unreported(ctx context.Context, p stream.Place) ([]runs.Usage, error) {
	steps, err := a.stepsOn(ctx, p)
	if err != nil {
		return nil, err
	}
	var all []runs.Usage
	for _, s := range steps {
		if err := a.count(ctx, p.Run, s.step, s.used); err != nil {
			return nil, err
		}
		all = append(all, s.used...)
	}
	return runs.Sum(all), nil
}

// usageIn returns all usage that an answer reports: of its own call, earlier attempts and
// summaries.
func usageIn(answer runs.ModelAnswer) []runs.Usage {
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

// value returns a count; 0 = it is unknown.
func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// maxModelName bounds the model name of a provider in a history, in bytes.
const maxModelName = 128

// modelName returns the provider's name of the model, with every character replaced by "_" that is
// not printable ASCII or could be markup. The name comes from outside, and goes to histories,
// metrics and clients.
func modelName(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || strings.ContainsRune(`<>&"\`, r) {
			return '_'
		}
		return r
	}, s[:min(len(s), maxModelName)])
}

// maxTokenCount is more than any call can cost. A count beyond it, or below zero, is taken as not
// reported: sums of such counts could overflow.
const maxTokenCount = 1 << 40

// tokenCount returns a plausible count, and nil for others.
func tokenCount(n *int64) *int64 {
	if n == nil || *n < 0 || *n > maxTokenCount {
		return nil
	}
	return n
}

// usageOf returns what a provider has reported, without Calls and Cost.
func usageOf(f llm.Finish) runs.Usage {
	u := f.Usage
	return runs.Usage{
		Provider: f.Provider, Model: modelName(f.Model), Input: tokenCount(u.Input), Output: tokenCount(u.Output), Total: tokenCount(u.Total),
		Reasoning: tokenCount(u.Reasoning), CachedInput: tokenCount(u.CachedInput), CacheWrite: tokenCount(u.CacheWrite),
	}
}
