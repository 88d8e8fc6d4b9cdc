package cli

import (
	"fmt"
	"io"
	"strings"
)

// style is how a terminal shows something.
type style string

const (
	plain  style = ""
	dim    style = "\x1b[2m"
	strong style = "\x1b[1m"
	alarm  style = "\x1b[31m"
	normal style = "\x1b[0m"
)

// page is where text is written. Two pages may be one terminal: then they know of each other's lines.
type page struct {
	w        io.Writer
	terminal bool // somebody looks at it
	colors   bool
	column   *column
}

// column tells whether a line is not ended yet.
type column struct{ open bool }

// pages are those of a command: for its answer, and for its notices.
func (e *environment) pages(out, notices io.Writer) (answer, notes *page) {
	colors := e.getenv("NO_COLOR") == "" && e.getenv("TERM") != "dumb"
	of := func(w io.Writer, c *column) *page {
		terminal := isTerminal(w)
		return &page{w: w, terminal: terminal, colors: terminal && colors, column: c}
	}
	shared := &column{}
	answer, notes = of(out, shared), of(notices, shared)
	if answer.terminal != notes.terminal {
		notes.column = &column{}
	}
	return answer, notes
}

// write writes text as it comes.
func (p *page) write(text string, s style) {
	if text == "" {
		return
	}
	if p.terminal {
		text = onTerminal(text)
	}
	p.column.open = !strings.HasSuffix(text, "\n")
	if p.colors && s != plain {
		text = string(s) + text + string(normal)
	}
	_, _ = io.WriteString(p.w, text) // a terminal that is gone ends the process
}

// end ends the line, if there is one.
func (p *page) end() {
	if p.column.open {
		_, _ = io.WriteString(p.w, "\n")
		p.column.open = false
	}
}

// line writes whole lines, each behind the same beginning.
func (p *page) line(begin string, s style, format string, args ...any) {
	p.end()
	for text := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		p.write(begin+text+"\n", s)
	}
}
