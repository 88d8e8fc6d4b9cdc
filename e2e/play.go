package e2e

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
	turnTool = 0
	asked    = -1 // before the first piece
	pieces   = 5  // of each kind
)

// play is what the model and the tool of one run do, and what they did. It stands still once, at
// one place, until it is let go; further attempts pass there. It is safe for concurrent use.
type play struct {
	id   string
	tool string // observe, which is idempotent, or charge, which is not
	flaw flaw   // what goes wrong where the play stands still; nil = nothing
	turn int    // where it stands still: behind a piece of a turn
	at   int
	pace time.Duration // between pieces; 0 = none

	held    chan struct{} // closed when it stands still
	release chan struct{} // closed to let it go
	letGo   sync.Once

	mu      sync.Mutex
	journal []*performance
}

// performance is one call of the model, or of the tool.
type performance struct {
	turn, attempt int
	began         time.Time
	finished      bool // all was said
	// what the model said
	thought, text string
	calls         []modelCall
	// what the tool was told, and said
	note, key, answer string
}

// nowhere is a turn that no play has.
const nowhere = -1

func newPlay(tool string, turn, at int) *play {
	return &play{
		id: rand.Text()[:16], tool: tool, turn: turn, at: at,
		held: make(chan struct{}), release: make(chan struct{}),
	}
}

// prompt makes the model play it.
func (p *play) prompt() string { return say("play:" + p.id) }

// goOn lets the play go.
func (p *play) goOn() { p.letGo.Do(func() { close(p.release) }) }

func (p *play) note(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *play) begin(turn int, began time.Time) *performance {
	p.mu.Lock()
	defer p.mu.Unlock()
	pf := &performance{turn: turn, began: began, attempt: 1}
	for _, earlier := range p.journal {
		if earlier.turn == turn {
			pf.attempt++
		}
	}
	p.journal = append(p.journal, pf)
	return pf
}

// strikes reports whether a performance has come to where the play stands still.
func (p *play) strikes(pf *performance, at int) bool {
	return pf.attempt == 1 && pf.turn == p.turn && at == p.at
}

// pause stands still where the play is to. It tells whether whoever listens is still there.
func (p *play) pause(ctx context.Context, pf *performance, at int) bool {
	if p.strikes(pf, at) {
		close(p.held)
		select {
		case <-p.release:
		case <-ctx.Done():
			return false
		}
	}
	if p.pace == 0 {
		return true
	}
	select {
	case <-time.After(p.pace):
		return true
	case <-ctx.Done():
		return false
	}
}

// performances returns those of a turn so far, as copies.
func (p *play) performances(turn int) []performance {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []performance
	for _, pf := range p.journal {
		if pf.turn == turn {
			c := *pf
			c.calls = slices.Clone(pf.calls)
			list = append(list, c)
		}
	}
	return list
}

// piece is a part of a completion.
type piece struct {
	kind  string // thought, text or arguments
	text  string
	call  int // which call
	start *modelCall
}

// script returns what the model says in a turn, differently in each attempt.
func (p *play) script(turn, attempt int) []piece {
	word := func(i int) string { return fmt.Sprintf("%s %d.%d.%d ", mark, turn, attempt, i) }
	var list []piece
	if turn == 2 {
		for i := range pieces {
			list = append(list, piece{kind: "text", text: word(i)})
		}
		return list
	}
	for i := range pieces {
		list = append(list, piece{kind: "thought", text: word(i)})
	}
	return append(list, p.toolCall(0, word)...)
}

// toolCall returns one call in pieces.
func (p *play) toolCall(call int, word func(int) string) []piece {
	list := []piece{{kind: "arguments", call: call, start: &modelCall{ID: "call_same", Name: p.tool},
		text: fmt.Sprintf(`{"play":"%s","note":"%d `, p.id, call)}}
	for i := range pieces - 2 {
		list = append(list, piece{kind: "arguments", call: call, text: word(i)})
	}
	return append(list, piece{kind: "arguments", call: call, text: `"}`})
}

// delta returns the piece as the API has it.
func (p piece) delta() string {
	switch p.kind {
	case "thought":
		return `{"reasoning_content":` + quote(p.text) + `}`
	case "text":
		return `{"content":` + quote(p.text) + `}`
	}
	if p.start != nil {
		return fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}]}`,
			p.call, quote(p.start.ID), quote(p.start.Name), quote(p.text))
	}
	return fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, p.call, quote(p.text))
}

// hear notes a piece as a client is to see it.
func (pf *performance) hear(p piece) {
	text := strings.ToValidUTF8(p.text, "\uFFFD")
	switch p.kind {
	case "thought":
		pf.thought += text
	case "text":
		pf.text += text
	default:
		if p.start != nil {
			pf.calls = append(pf.calls, *p.start)
		}
		pf.calls[p.call].Arguments += text
	}
}

// speech is one streamed completion.
type speech struct {
	w     http.ResponseWriter
	ctx   context.Context
	play  *play
	pf    *performance
	begun bool
}

// flaw is something that goes wrong in a completion. It tells whether the model goes on afterwards.
type flaw func(*speech) bool
