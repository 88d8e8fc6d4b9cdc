package activities

import (
	"context"
	"errors"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/activities/prompt"
	"github.com/perdure/perdure/internal/control/admission"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file is one request to a model: its admission, its stream, and what is known of its usage.

// modelCall is one request to a model, and what is known of its cost. The caller calls stream once,
// and then end or abandon once, from one goroutine. Only the hooks of trace run on other
// goroutines, those of the HTTP transport; they touch the atomic fields and the attempt. The caller
// owns the attempt.
type modelCall struct {
	activities *Activities
	attempt    *stream.Attempt
	chat       *telemetry.Chat
	note       callNote
	// finish is the last chunk; nil = the answer is not complete. output is all text, reasoning and
	// tool calls so far, for an estimate. hasChunk tells that the provider has sent something, so
	// the call is not free.
	finish   *llm.Finish
	output   strings.Builder
	hasChunk bool
	// isHidden tells that the log does not get the output: the notes have an estimate of its
	// tokens. noted is the length of the output at the last such note.
	isHidden bool
	noted    int
	// maxAdmissionWait is how long the call waits for its admission.
	maxAdmissionWait time.Duration

	// hasNote tells that the log may have the note. hasDialed and hasSent tell whether an HTTP
	// request has asked for a connection, and was written; models without HTTP set neither.
	hasNote            atomic.Bool
	hasDialed, hasSent atomic.Bool
}

// newModelCall returns a call of a model, whose fullName is that in an agent ("openai/gpt-5"). The
// call writes its notes with attempt. end ends chat.
func (a *Activities) newModelCall(attempt *stream.Attempt, fullName string, chat *telemetry.Chat) *modelCall {
	return &modelCall{activities: a, attempt: attempt, chat: chat, note: callNote{Model: fullName}, maxAdmissionWait: maxAdmissionWait}
}

// stream waits for the admission of the call, makes it, and hands each chunk to onChunk. It returns
// when the completion has ended, or with the error of the admission, of the model, of onChunk, or of
// the log. The log has the note before an HTTP request is sent. For a model that sends none, the note
// is set with the first chunk.
func (c *modelCall) stream(ctx context.Context, model llm.Model, req *llm.Request, onChunk func(llm.Chunk) error) (err error) {
	provider, _, _ := strings.Cut(c.note.Model, "/")
	input := prompt.RequestTokens(req)
	c.note.Usage = runs.Usage{Provider: provider, Model: modelName(req.Model), Input: &input}
	if ctx.Err() != nil {
		// Nothing is sent to the provider with a context that has ended.
		c.note.Free = true
		return context.Cause(ctx)
	}
	admitted, err := c.admit(ctx)
	if err != nil {
		c.note.Free = true
		return err
	}
	defer func() { admitted.End(err) }() // also after a panic, which Temporal recovers
	return c.exchange(ctx, model, req, func(chunk llm.Chunk) error {
		admitted.Answers()
		return onChunk(chunk)
	})
}

// admit waits for the admission of the call. A wait that is not brief is noted in the log.
func (c *modelCall) admit(ctx context.Context) (*admission.Call, error) {
	began, hasWaited := time.Now(), false
	call, err := c.activities.Admission.Admit(ctx, c.note.Model, admission.Wait{Longest: c.maxAdmissionWait, Begun: func() {
		hasWaited = true
		note := c.note
		note.Free, note.Waits = true, true
		_ = c.attempt.Note(note) // it is for the trace
	}})
	if hasWaited {
		c.chat.Waited(time.Since(began))
	}
	return call, err
}

// exchange makes the call that was admitted.
func (c *modelCall) exchange(ctx context.Context, model llm.Model, req *llm.Request, onChunk func(llm.Chunk) error) error {
	for chunk, err := range model.Stream(c.trace(ctx), req) {
		if err != nil {
			return err
		}
		if err := c.addChunk(chunk); err != nil {
			return err
		}
		if err := onChunk(chunk); err != nil {
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
		GetConn: func(string) { c.hasDialed.Store(true) },
		GotConn: func(httptrace.GotConnInfo) {
			c.hasNote.Store(true)
			_ = errors.Join(c.attempt.Note(note), c.attempt.Flush(ctx))
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				c.hasSent.Store(true)
			}
		},
	})
}

// addChunk takes what the usage depends on from a chunk. It sets the note with the first chunk, if
// no HTTP hook has.
func (c *modelCall) addChunk(chunk llm.Chunk) error {
	c.hasChunk = true
	if !c.hasNote.Swap(true) {
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
		c.output.WriteString(chunk.Text)
	case llm.ReasoningDelta:
		c.output.WriteString(chunk.Text)
	case llm.ToolCallStart:
		c.output.WriteString(chunk.Name)
	case llm.ToolCallDelta:
		c.output.WriteString(chunk.Arguments)
	}
	c.chat.Chunk()
	if c.isHidden && c.output.Len() >= c.noted+hiddenOutputNote {
		c.noted = c.output.Len()
		tokens := max(countOrZero(c.note.Usage.Output), prompt.TextTokens(c.output.String()))
		c.note.Usage.Output = &tokens
		return c.attempt.Note(c.note)
	}
	return nil
}

// hiddenOutputNote is after how many further bytes of output a hidden step notes its tokens.
const hiddenOutputNote = 256

// report takes over what the provider has counted so far. It writes a note if the input or the
// model changed. It writes none for the output, which grows with each report: the attempt
// after a dead one estimates the output from the text in the log.
func (c *modelCall) report(report llm.UsageReport) error {
	estimate := c.note.Usage.Input
	previous := c.note.Usage
	c.note.Usage = reportedUsage(llm.Finish{Usage: report.Usage, Model: report.Model, Provider: report.Provider})
	// A total of an incomplete answer would be taken for its usage.
	c.note.Usage.Total = nil
	if c.note.Usage.Input == nil {
		c.note.Usage.Input = estimate
	}
	if countOrZero(previous.Input) == countOrZero(c.note.Usage.Input) && previous.Model == c.note.Usage.Model {
		return nil
	}
	return c.attempt.Note(c.note)
}

// end returns the usage of the call, after stream has returned err, and ends the telemetry of the
// call. The usage is the provider's report, or an estimate if there is none, or zero if the call
// was free. The caller then writes the done record with it; an attempt that writes none calls
// abandon instead.
func (c *modelCall) end(err error) runs.Usage {
	c.note.Free = c.note.Free || c.isFree(err)
	var usage runs.Usage
	switch {
	case c.isReported():
		usage = reportedUsage(*c.finish)
		c.note.Usage, c.note.Complete = usage, true
		usage.Calls = 1
		usage = c.activities.withCost(c.note.Model, usage)
	case !c.note.Free:
		usage = c.activities.estimatedUsage(c.note, c.output.String())
		c.note.Usage.Output = usage.Output
	}
	response := telemetry.ChatResponse{Model: usage.Model, Currency: c.activities.currency(), Error: errorKind(err), Estimated: usage.Estimated != nil}
	if c.finish != nil {
		response.Finish = string(c.finish.Reason)
	}
	// The attempt that took the lane over counts a fenced call, and records its metrics.
	if !errors.Is(err, stream.ErrFenced) {
		response.Input, response.Output, response.Cost = usage.Input, usage.Output, usage.Cost
		c.note.Metered = true
	}
	c.chat.End(response)
	return usage
}

// abandon is end for an attempt that writes no done record. It writes a last note, which makes the
// count exact: it has the output and whether the call was free.
func (c *modelCall) abandon(ctx context.Context, err error) runs.Usage {
	usage := c.end(err)
	if c.hasNote.Load() || !c.note.Free {
		// Without the last note the call is counted by an estimate from the note before.
		finalCtx, cancel := contextAfter(ctx)
		defer cancel()
		_ = errors.Join(c.attempt.Note(c.note), c.attempt.Flush(finalCtx))
	}
	return usage
}

// isReported reports whether the answer is complete and the provider has reported its usage: the
// total, or input and output. Some model servers report nothing; their answers are estimated like
// those that were cut.
func (c *modelCall) isReported() bool {
	if c.finish == nil {
		return false
	}
	u := reportedUsage(*c.finish)
	return u.Total != nil || u.Input != nil && u.Output != nil
}

// isFree reports whether a call that ended with err costs nothing: the provider refused the
// request, or it was never sent.
func (c *modelCall) isFree(err error) bool {
	if err == nil || c.hasChunk {
		return false
	}
	if c.hasDialed.Load() && !c.hasSent.Load() {
		return true
	}
	var refusal *llm.Error
	return errors.As(err, &refusal) && refusal.Refused()
}
