package gemini

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
)

// event is one event of the stream, a GenerateContentResponse. Text fields stay undecoded JSON
// literals, because encoding/json would destroy a character that is split between two events
// ([wire.Unquote]).
type event struct {
	Error      json.RawMessage `json:"error"`
	Candidates []candidate     `json:"candidates"`
	// Feedback is set for a blocked prompt.
	Feedback struct {
		BlockReason string `json:"blockReason"`
		Message     string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage        *counts         `json:"usageMetadata"`
	ModelVersion json.RawMessage `json:"modelVersion"`
}

// candidate is one alternative of the answer. Only the candidate with index 0 is read.
type candidate struct {
	Index   int `json:"index"`
	Content struct {
		Parts []piece `json:"parts"`
	} `json:"content"`
	FinishReason string `json:"finishReason"`
}

// piece is a part of the answer, or the continuation of the previous part.
type piece struct {
	Text             json.RawMessage `json:"text"`
	Thought          bool            `json:"thought"` // Text is a thought summary
	ThoughtSignature json.RawMessage `json:"thoughtSignature"`
	FunctionCall     *struct {
		ID   json.RawMessage `json:"id"`
		Name json.RawMessage `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// counts is the usageMetadata object: the tokens of the completion so far.
type counts struct {
	Prompt     *int64 `json:"promptTokenCount"`     // including cached tokens
	Candidates *int64 `json:"candidatesTokenCount"` // without thoughts
	Thoughts   *int64 `json:"thoughtsTokenCount"`
	Cached     *int64 `json:"cachedContentTokenCount"` // subset of Prompt
	Total      *int64 `json:"totalTokenCount"`
}

// events splits the body into server-sent events. It implements [wire.Events]. It reads only data
// fields, because the API sends no other field.
type events struct {
	lines *bufio.Scanner
	data  []byte // of the current event, its lines joined
}

// newEvents returns the events of body, whose lines have at most longest bytes.
func newEvents(body io.Reader, longest int) *events {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, longest+2) // 2 for the line end; [wire.Limits] fails first
	return &events{lines: lines}
}

// Next implements [wire.Events]. It discards an event without a blank line at its end, as the
// specification of server-sent events requires.
func (e *events) Next() bool {
	e.data = nil
	for e.lines.Scan() {
		line := e.lines.Text()
		if line == "" && e.data != nil {
			return true
		}
		if value, ok := strings.CutPrefix(line, "data:"); ok {
			e.data = append(append(e.data, value...), '\n')
		}
	}
	return false
}

// Event implements [wire.Events]. It returns the data of the event.
func (e *events) Event() []byte { return e.data }

// Err implements [wire.Events].
func (e *events) Err() error { return e.lines.Err() }
