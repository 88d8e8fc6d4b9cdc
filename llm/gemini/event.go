package gemini

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
)

// event is one event of the stream. Text stays as it was written: a character
// may be cut in two.
type event struct {
	Error      json.RawMessage `json:"error"`
	Candidates []candidate     `json:"candidates"`
	Feedback   struct {
		BlockReason string `json:"blockReason"`
		Message     string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage        *counts         `json:"usageMetadata"`
	ModelVersion json.RawMessage `json:"modelVersion"`
}

// candidate is an answer; only the first one is read.
type candidate struct {
	Index   int `json:"index"`
	Content struct {
		Parts []piece `json:"parts"`
	} `json:"content"`
	FinishReason string `json:"finishReason"`
}

// piece is a part of an answer, or what continues one.
type piece struct {
	Text             json.RawMessage `json:"text"`
	Thought          bool            `json:"thought"`
	ThoughtSignature json.RawMessage `json:"thoughtSignature"`
	FunctionCall     *struct {
		ID   json.RawMessage `json:"id"`
		Name json.RawMessage `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// counts are tokens so far.
type counts struct {
	Prompt     *int64 `json:"promptTokenCount"` // including the cached
	Candidates *int64 `json:"candidatesTokenCount"`
	Thoughts   *int64 `json:"thoughtsTokenCount"` // beside the candidates
	Cached     *int64 `json:"cachedContentTokenCount"`
	Total      *int64 `json:"totalTokenCount"`
}

// events splits a stream of server-sent events, of which the API uses only data.
type events struct {
	lines *bufio.Scanner
	data  []byte
}

func newEvents(body io.Reader, longest int) *events {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, longest+2) // the line and its end; the body's own bound comes first
	return &events{lines: lines}
}

// Next reads the next event, and reports whether there is one.
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

// Event returns the data of the event.
func (e *events) Event() []byte { return e.data }

// Err returns why the stream ended; nil = regularly.
func (e *events) Err() error { return e.lines.Err() }
