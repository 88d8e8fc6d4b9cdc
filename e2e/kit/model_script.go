package kit

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Each scripted run has two turns: the model reasons and calls a tool, then it sends a text.
const (
	TurnTool         = 0
	BeforeFirstChunk = -1 // the position before the first chunk
	ChunksPerKind    = 5  // of reasoning, arguments and text
)

// ModelScript determines the behavior of the model and the tool in one run, and records their
// invocations. The first invocation of Turn pauses once, at position At, until Release. Later
// attempts do not pause. A ModelScript is safe for concurrent use.
type ModelScript struct {
	id       string
	Tool     string     // observe (idempotent) or charge (not idempotent)
	Fault    ModelFault // happens at the pause; nil = none
	Turn     int        // the turn that pauses; NoTurn = none
	At       int
	Interval time.Duration // between chunks; 0 = none

	Paused      chan struct{} // closed when the script pauses
	release     chan struct{} // closed by Release
	releaseOnce sync.Once

	mu      sync.Mutex
	journal []*Invocation
}

// Invocation is one call of the model or of the tool.
type Invocation struct {
	turn, attempt int
	Began         time.Time
	Finished      bool // the whole answer was sent
	// Sent by the model.
	Thought, Text string
	Calls         []ModelCall
	// Received and sent by the tool.
	Note, Key, Answer string
}

// NoTurn is a turn that no script has.
const NoTurn = -1

// NewModelScript returns a script that pauses in a turn after the chunk with index at, or at
// BeforeFirstChunk.
func NewModelScript(tool string, turn, at int) *ModelScript {
	return &ModelScript{
		id: rand.Text()[:16], Tool: tool, Turn: turn, At: at,
		Paused: make(chan struct{}), release: make(chan struct{}),
	}
}

// Prompt returns a user message that makes the model follow the script.
func (s *ModelScript) Prompt() string { return Marked("script:" + s.id) }

// Release ends the pause.
func (s *ModelScript) Release() { s.releaseOnce.Do(func() { close(s.release) }) }

// update changes the script.
func (s *ModelScript) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// begin notes a model call.
func (s *ModelScript) begin(turn int, began time.Time) *Invocation {
	s.mu.Lock()
	defer s.mu.Unlock()
	inv := &Invocation{turn: turn, Began: began, attempt: 1}
	for _, earlier := range s.journal {
		if earlier.turn == turn {
			inv.attempt++
		}
	}
	s.journal = append(s.journal, inv)
	return inv
}

// pausesAt reports whether an invocation is the one that pauses, at this position.
func (s *ModelScript) pausesAt(inv *Invocation, at int) bool {
	return inv.attempt == 1 && inv.turn == s.Turn && at == s.At
}

// pause waits for Release at the pause, and then for the interval between chunks. It reports false
// if the client has disconnected.
func (s *ModelScript) pause(ctx context.Context, inv *Invocation, at int) bool {
	if s.pausesAt(inv, at) {
		close(s.Paused)
		select {
		case <-s.release:
		case <-ctx.Done():
			return false
		}
	}
	if s.Interval == 0 {
		return true
	}
	select {
	case <-time.After(s.Interval):
		return true
	case <-ctx.Done():
		return false
	}
}

// Invocations returns copies of the invocations of a turn.
func (s *ModelScript) Invocations(turn int) []Invocation {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Invocation
	for _, inv := range s.journal {
		if inv.turn == turn {
			c := *inv
			c.Calls = slices.Clone(inv.Calls)
			list = append(list, c)
		}
	}
	return list
}

// chunk is a part of a completion.
type chunk struct {
	kind  string // thought, text or arguments
	text  string
	call  int // index of the call
	start *ModelCall
}

// chunks returns the completion of a turn, which differs in each attempt.
func (s *ModelScript) chunks(turn, attempt int) []chunk {
	word := func(i int) string { return fmt.Sprintf("%s %d.%d.%d ", Mark, turn, attempt, i) }
	var list []chunk
	if turn == 2 {
		for i := range ChunksPerKind {
			list = append(list, chunk{kind: "text", text: word(i)})
		}
		return list
	}
	for i := range ChunksPerKind {
		list = append(list, chunk{kind: "thought", text: word(i)})
	}
	return append(list, s.toolCall(0, word)...)
}

// toolCall returns the chunks of one call.
func (s *ModelScript) toolCall(call int, word func(int) string) []chunk {
	list := []chunk{{kind: "arguments", call: call, start: &ModelCall{ID: "call_same", Name: s.Tool},
		text: fmt.Sprintf(`{"script":"%s","note":"%d `, s.id, call)}}
	for i := range ChunksPerKind - 2 {
		list = append(list, chunk{kind: "arguments", call: call, text: word(i)})
	}
	return append(list, chunk{kind: "arguments", call: call, text: `"}`})
}

// delta returns the chunk in the form of the API.
func (c chunk) delta() string {
	switch c.kind {
	case "thought":
		return `{"reasoning_content":` + Quote(c.text) + `}`
	case "text":
		return `{"content":` + Quote(c.text) + `}`
	}
	if c.start != nil {
		return fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}]}`,
			c.call, Quote(c.start.ID), Quote(c.start.Name), Quote(c.text))
	}
	return fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, c.call, Quote(c.text))
}

// record adds a chunk to the invocation, as clients see it.
func (inv *Invocation) record(c chunk) {
	text := strings.ToValidUTF8(c.text, "\uFFFD")
	switch c.kind {
	case "thought":
		inv.Thought += text
	case "text":
		inv.Text += text
	default:
		if c.start != nil {
			inv.Calls = append(inv.Calls, *c.start)
		}
		inv.Calls[c.call].Arguments += text
	}
}

// completion is one streamed completion.
type completion struct {
	w          http.ResponseWriter
	ctx        context.Context
	script     *ModelScript
	invocation *Invocation
	started    bool
}

// ModelFault is something that goes wrong in a completion. It reports whether the completion
// continues.
type ModelFault func(*completion) bool
