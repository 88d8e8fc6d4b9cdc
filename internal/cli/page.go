package cli

import (
	"fmt"
	"io"
	"strings"
)

// style is the look of a text on a terminal.
type style string

const (
	plain  style = ""
	dim    style = "\x1b[2m"
	strong style = "\x1b[1m"
	alarm  style = "\x1b[31m"
	normal style = "\x1b[0m"
)

// page writes text to a terminal or a file. Two pages that are the same terminal share the state of
// the current line.
type page struct {
	w        io.Writer
	terminal bool // a person reads it
	colors   bool
	column   *column
}

// column tells whether the current line has not ended.
type column struct{ open bool }

// pages returns the page of the answer and the page of the notices.
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

// write writes text without ending the line.
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
	_, _ = io.WriteString(p.w, text) // the process ends with its terminal
}

// end ends the current line, if one is open.
func (p *page) end() {
	if p.column.open {
		_, _ = io.WriteString(p.w, "\n")
		p.column.open = false
	}
}

// line writes a text as whole lines, each with the same prefix.
func (p *page) line(begin string, s style, format string, args ...any) {
	p.end()
	for text := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		p.write(begin+text+"\n", s)
	}
}
