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

// Each run of the matrix has two turns: the model thinks and calls a tool, then it answers.
const (
	TurnTool = 0
	Asked    = -1 // before the first piece
	Pieces   = 5  // of each kind
)

// ModelScript is what the model and the tool of one run do, and what they did. It stands still
// once, at one place, until it is let go; further attempts pass there. It is safe for concurrent
// use.
type ModelScript struct {
	id   string
	Tool string     // observe, which is idempotent, or charge, which is not
	Flaw ModelFault // what goes wrong where the play stands still; nil = nothing
	Turn int        // where it stands still: behind a piece of a turn
	At   int
	Pace time.Duration // between pieces; 0 = none

	Held    chan struct{} // closed when it stands still
	release chan struct{} // closed to let it go
	letGo   sync.Once

	mu      sync.Mutex
	journal []*Invocation
}

// Invocation is one call of the model, or of the tool.
type Invocation struct {
	turn, attempt int
	Began         time.Time
	Finished      bool // all was said
	// what the model said
	Thought, Text string
	Calls         []ModelCall
	// what the tool was told, and said
	Note, Key, Answer string
}

// Nowhere is a turn that no play has.
const Nowhere = -1

func NewModelScript(tool string, turn, at int) *ModelScript {
	return &ModelScript{
		id: rand.Text()[:16], Tool: tool, Turn: turn, At: at,
		Held: make(chan struct{}), release: make(chan struct{}),
	}
}

// Prompt makes the model play it.
func (p *ModelScript) Prompt() string { return Say("play:" + p.id) }

// GoOn lets the play go.
func (p *ModelScript) GoOn() { p.letGo.Do(func() { close(p.release) }) }

func (p *ModelScript) note(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *ModelScript) begin(turn int, began time.Time) *Invocation {
	p.mu.Lock()
	defer p.mu.Unlock()
	pf := &Invocation{turn: turn, Began: began, attempt: 1}
	for _, earlier := range p.journal {
		if earlier.turn == turn {
			pf.attempt++
		}
	}
	p.journal = append(p.journal, pf)
	return pf
}

// strikes reports whether a performance has come to where the play stands still.
func (p *ModelScript) strikes(pf *Invocation, at int) bool {
	return pf.attempt == 1 && pf.turn == p.Turn && at == p.At
}

// pause stands still where the play is to. It tells whether whoever listens is still there.
func (p *ModelScript) pause(ctx context.Context, pf *Invocation, at int) bool {
	if p.strikes(pf, at) {
		close(p.Held)
		select {
		case <-p.release:
		case <-ctx.Done():
			return false
		}
	}
	if p.Pace == 0 {
		return true
	}
	select {
	case <-time.After(p.Pace):
		return true
	case <-ctx.Done():
		return false
	}
}

// Performances returns those of a turn so far, as copies.
func (p *ModelScript) Performances(turn int) []Invocation {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []Invocation
	for _, pf := range p.journal {
		if pf.turn == turn {
			c := *pf
			c.Calls = slices.Clone(pf.Calls)
			list = append(list, c)
		}
	}
	return list
}

// chunk is a part of a completion.
type chunk struct {
	kind  string // thought, text or arguments
	text  string
	call  int // which call
	start *ModelCall
}

// script returns what the model says in a turn, differently in each attempt.
func (p *ModelScript) script(turn, attempt int) []chunk {
	word := func(i int) string { return fmt.Sprintf("%s %d.%d.%d ", Mark, turn, attempt, i) }
	var list []chunk
	if turn == 2 {
		for i := range Pieces {
			list = append(list, chunk{kind: "text", text: word(i)})
		}
		return list
	}
	for i := range Pieces {
		list = append(list, chunk{kind: "thought", text: word(i)})
	}
	return append(list, p.toolCall(0, word)...)
}

// toolCall returns one call in pieces.
func (p *ModelScript) toolCall(call int, word func(int) string) []chunk {
	list := []chunk{{kind: "arguments", call: call, start: &ModelCall{ID: "call_same", Name: p.Tool},
		text: fmt.Sprintf(`{"play":"%s","note":"%d `, p.id, call)}}
	for i := range Pieces - 2 {
		list = append(list, chunk{kind: "arguments", call: call, text: word(i)})
	}
	return append(list, chunk{kind: "arguments", call: call, text: `"}`})
}

// delta returns the piece as the API has it.
func (p chunk) delta() string {
	switch p.kind {
	case "thought":
		return `{"reasoning_content":` + Quote(p.text) + `}`
	case "text":
		return `{"content":` + Quote(p.text) + `}`
	}
	if p.start != nil {
		return fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}]}`,
			p.call, Quote(p.start.ID), Quote(p.start.Name), Quote(p.text))
	}
	return fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, p.call, Quote(p.text))
}

// hear notes a piece as a client is to see it.
func (pf *Invocation) hear(p chunk) {
	text := strings.ToValidUTF8(p.text, "\uFFFD")
	switch p.kind {
	case "thought":
		pf.Thought += text
	case "text":
		pf.Text += text
	default:
		if p.start != nil {
			pf.Calls = append(pf.Calls, *p.start)
		}
		pf.Calls[p.call].Arguments += text
	}
}

// completion is one streamed completion.
type completion struct {
	w     http.ResponseWriter
	ctx   context.Context
	play  *ModelScript
	pf    *Invocation
	begun bool
}

// ModelFault is something that goes wrong in a completion. It tells whether the model goes on
// afterwards.
type ModelFault func(*completion) bool
