package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Failure tells why an attempt failed, for the trace of its run, and for the choice of the next
// attempt's model. It has no secret. Temporal decides whether there is a next attempt.
type Failure struct {
	// Code is an error code, such as rate_limited. Message has no content.
	Code    string `json:"code"`
	Message string `json:"message"`
	// Detail is the text of a provider or a tool, which may have content: ReportFailure leaves it out
	// if the step is hidden.
	Detail string `json:"detail,omitempty"`
	// Hint tells an operator what to do; "" = nothing is known.
	Hint string `json:"hint,omitempty"`
	// Model is the model whose call failed, as provider/model; "" = the attempt failed otherwise.
	// Unusable tells that the error of the model is never attempted again, RetryAfter is the pause that
	// its provider asked for. The next attempt chooses its model by them.
	Model      string        `json:"model,omitempty"`
	Unusable   bool          `json:"unusable,omitempty"`
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
	// Final tells that no attempt follows. Pause is the time until the next one.
	Final bool          `json:"final,omitempty"`
	Pause time.Duration `json:"pause,omitempty"`
}

// MaxFailureMessage bounds each text of a Failure, in bytes.
const MaxFailureMessage = 1000

// failurePrefix begins the result of a record with a Failure. No note of an attempt begins with it.
var failurePrefix = []byte(`{"failure":`)

// failureNote is the result of a record with a Failure.
type failureNote struct {
	Failure Failure `json:"failure"`
}

// ReportFailure writes why the attempt fails, as its last record. The step stays open for the next
// attempt. ReportFailure returns when the log has acknowledged the record and all events before it.
// The error is that of Flush.
func (a *Attempt) ReportFailure(ctx context.Context, f Failure) error {
	if err := a.Flush(ctx); err != nil { // a note that is pending would be replaced
		return err
	}
	if a.place.Hidden {
		f.Detail = ""
	}
	for _, text := range []*string{&f.Message, &f.Detail, &f.Hint} {
		*text = clipBytes(*text, MaxFailureMessage)
	}
	if err := a.Note(failureNote{f}); err != nil {
		return err
	}
	return a.Flush(ctx)
}

// clipBytes returns the first bytes of a text, without a broken character at the end.
func clipBytes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return string(bytes.ToValidUTF8([]byte(text[:limit]), nil))
}

// isFailure reports whether a note is one of ReportFailure.
func isFailure(note json.RawMessage) bool { return bytes.HasPrefix(note, failurePrefix) }

// AttemptNote returns what an attempt has written about itself in a record of KindEvents: the
// failure of ReportFailure, or the note of Attempt.Note. Both are nil if the record has neither.
func (r *Record) AttemptNote(ctx context.Context) (*Failure, json.RawMessage, error) {
	if r.Kind != KindEvents || !r.HasResult() {
		return nil, nil, nil
	}
	var note json.RawMessage
	if err := r.Result(ctx, &note); err != nil {
		return nil, nil, err
	}
	if !isFailure(note) {
		return nil, note, nil
	}
	var decoded failureNote
	if err := json.Unmarshal(note, &decoded); err != nil {
		return nil, nil, fmt.Errorf("stream: failure in record %d: %w", r.Seq, err)
	}
	return &decoded.Failure, nil, nil
}
