package stream

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/perdure/perdure/agui"
)

// AttemptOutput is what one attempt of a step has written to a lane. The next attempt, or the
// activity that ends the run, charges the model call of an attempt that died by it.
type AttemptOutput struct {
	Step   string
	Writer string
	// Note is the attempt's newest note, without the record of ReportFailure; nil = it set none.
	Note json.RawMessage
	// Failure is what the attempt has written with ReportFailure; nil = nothing.
	Failure *Failure
	// Text is the concatenated text, reasoning, tool names and arguments of the attempt's events:
	// the part of the answer that reached the log, for an estimate of its tokens.
	Text string
	// Done is the attempt's done record; nil = it did not finish.
	Done *Record
}

// AttemptOutputs returns the attempts on a lane that wrote records after Place.After and
// Place.Since, in their order. Records of other executions do not count. It depends on the log
// alone: once all attempts of a lane have ended, it always returns the same.
func (l *Log) AttemptOutputs(ctx context.Context, p Place) ([]AttemptOutput, error) {
	subject, from := l.LaneSubject(p.Run, p.Lane), max(p.After, p.Since)
	last, err := l.lastOfLane(ctx, subject)
	if err != nil || lastSeq(last) <= from {
		return nil, err
	}
	var outputs []AttemptOutput
	var texts []*strings.Builder
	for rec, err := range l.Records(ctx, subject, from+1, last.Seq) {
		if err != nil {
			return nil, err
		}
		if !rec.writtenFor(p.Execution) || !rec.isOfAttempt() {
			continue
		}
		i := slices.IndexFunc(outputs, func(o AttemptOutput) bool { return o.Writer == rec.Writer })
		if i < 0 {
			i = len(outputs)
			outputs, texts = append(outputs, AttemptOutput{Step: rec.Step, Writer: rec.Writer}), append(texts, &strings.Builder{})
		}
		if err := outputs[i].add(ctx, rec, texts[i]); err != nil {
			return nil, err
		}
	}
	for i := range outputs {
		outputs[i].Text = texts[i].String()
	}
	return outputs, nil
}

// isOfAttempt reports whether an attempt has written the record.
func (r *Record) isOfAttempt() bool {
	return r.Kind == KindBegin || r.Kind == KindAttempt || r.Kind == KindEvents || r.Kind == KindDone
}

// add takes in the next record of the attempt; text collects Text.
func (o *AttemptOutput) add(ctx context.Context, rec *Record, text *strings.Builder) error {
	switch {
	case rec.Kind == KindDone:
		o.Done = rec
	case rec.Kind == KindEvents && rec.HasResult():
		failure, note, err := rec.AttemptNote(ctx)
		if err != nil {
			return err
		}
		if failure != nil {
			o.Failure = failure
		}
		if note != nil {
			o.Note = note
		}
	}
	events, err := rec.AnswerEvents(ctx)
	if err != nil {
		return err
	}
	for _, e := range events {
		switch e := e.(type) {
		case *agui.TextMessageContent:
			text.WriteString(e.Delta)
		case *agui.ReasoningMessageContent:
			text.WriteString(e.Delta)
		case *agui.ToolCallStart:
			text.WriteString(e.ToolCallName)
		case *agui.ToolCallArgs:
			text.WriteString(e.Delta)
		}
	}
	return nil
}

// AttemptEvents returns the events that an attempt of a step has written to its lane, without those of
// its done record.
func (l *Log) AttemptEvents(ctx context.Context, p Place, writer string) (events []agui.Event, err error) {
	subject, from := l.LaneSubject(p.Run, p.Lane), max(p.After, p.Since)
	last, err := l.lastOfLane(ctx, subject)
	if err != nil || lastSeq(last) <= from {
		return nil, err
	}
	for rec, err := range l.Records(ctx, subject, from+1, last.Seq) {
		if err != nil {
			return nil, err
		}
		if rec.Writer != writer || rec.Kind != KindEvents {
			continue
		}
		written, err := rec.Events(ctx)
		if err != nil {
			return nil, err
		}
		for _, raw := range written {
			e, err := agui.Decode(raw)
			if err != nil {
				return nil, err
			}
			events = append(events, e)
		}
	}
	return events, nil
}

// AnswerEvents returns the events of the record that have parts of a model's answer: text, reasoning,
// and the names and arguments of tool calls.
func (r *Record) AnswerEvents(ctx context.Context) ([]agui.Event, error) {
	events, err := r.Events(ctx)
	if err != nil {
		return nil, err
	}
	var parts []agui.Event
	for _, raw := range events {
		switch agui.TypeOf(raw) {
		case agui.EventTextMessageContent, agui.EventReasoningMessageContent, agui.EventToolCallStart, agui.EventToolCallArgs:
		default:
			continue
		}
		e, err := agui.Decode(raw)
		if err != nil {
			return nil, err
		}
		parts = append(parts, e)
	}
	return parts, nil
}

// AgentLanes returns the lanes of a run on which the subagent with the given lane, and subagents
// within it, write model calls.
func (l *Log) AgentLanes(ctx context.Context, run Run, lane Lane) ([]Lane, error) {
	lanes, err := l.listLanes(ctx, run)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(lanes, func(other Lane) bool {
		return !other.IsAgentLane() || !strings.HasPrefix(string(other), string(lane))
	}), nil
}
