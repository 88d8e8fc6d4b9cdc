package trace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// doneResult is what the trace reads of a stream.Result. Messages have content, and may be large.
type doneResult struct {
	Messages []struct {
		Role       agui.Role `json:"role"`
		ToolCallID string    `json:"toolCallId"`
		Error      string    `json:"error"`
		ToolCalls  []struct {
			ID       string `json:"id"`
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"toolCalls"`
	} `json:"messages"`
	Decided    *stream.Decided   `json:"decided"`
	Visibility stream.Visibility `json:"visibility"`
	Kept       json.RawMessage   `json:"kept"`
	Answer     json.RawMessage   `json:"answer"`
}

// advanceAnswer is what the trace reads of a runs.AdvanceResult.
type advanceAnswer struct {
	TreePosition struct {
		Undoing *failure `json:"undoing"`
	} `json:"treePosition"`
	Active   json.RawMessage `json:"active"`
	Branches json.RawMessage `json:"branches"`
	Sleep    time.Duration   `json:"sleep"`
	Failed   *failure        `json:"failed"`
}

// failure is the failure of a step.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// error returns the failure as an error; nil = there is none.
func (f *failure) error() *Error {
	if f == nil {
		return nil
	}
	return newError(f.Code, f.Message, "")
}

// decodeAs decodes an event of a known type.
func decodeAs[E agui.Event](raw []byte) (E, error) {
	var none E
	decoded, err := agui.Decode(raw)
	if err != nil {
		return none, err
	}
	e, ok := decoded.(E)
	if !ok {
		return none, errors.New("trace: unexpected type of an event")
	}
	return e, nil
}

// costIn returns the cost in the metadata of a run's last event; nil = it is unknown.
func costIn(metadata agui.Metadata) *Cost {
	var cost Cost
	if raw, ok := metadata["perdure.cost"]; !ok || json.Unmarshal(raw, &cost) != nil {
		return nil
	}
	return &cost
}

// maxResultError bounds the error of a tool call in a trace, in bytes.
const maxResultError = 500

// clip returns the first bytes of a text, without a broken character at the end.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

// eventsOf returns the events of records. Large last events of an attempt precede its done record.
func eventsOf(ctx context.Context, records []*stream.Record) ([][]byte, error) {
	var all [][]byte
	for _, rec := range records {
		events, err := rec.Events(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, events...)
	}
	return all, nil
}

// decodeAnswer decodes the answer of a done record into v, a pointer. A record without an answer
// leaves v as it is.
func decodeAnswer(rec *stream.Record, answer json.RawMessage, v any) error {
	if len(answer) == 0 {
		return nil
	}
	if err := json.Unmarshal(answer, v); err != nil {
		return fmt.Errorf("trace: answer of record %d: %w", rec.Seq, err)
	}
	return nil
}
