package cli

import (
	"fmt"
	"io"
	"strings"
)

// style is the look of a text on a terminal, as an ANSI escape sequence.
type style string

const (
	plain  style = ""
	dim    style = "\x1b[2m"
	strong style = "\x1b[1m"
	alarm  style = "\x1b[31m"
	normal style = "\x1b[0m"
)

// page writes text to a terminal or a file, and knows whether the current line is complete. Two
// pages that are the same terminal share their column, so that a notice never begins within a line
// of the answer. It is used by one goroutine.
type page struct {
	w        io.Writer
	terminal bool // w is a terminal
	colors   bool
	column   *column
}

// column is the state of the current line; open = it has text and no line feed.
type column struct{ open bool }

// pages returns the pages of the answer (standard output) and of the notices (standard error).
// Colors are off if NO_COLOR is set (no-color.org) or TERM is dumb.
func (e *environment) pages(out, notices io.Writer) (answer, notes *page) {
	colors := e.getenv("NO_COLOR") == "" && e.getenv("TERM") != "dumb"
	newPage := func(w io.Writer, c *column) *page {
		terminal := isTerminal(w)
		return &page{w: w, terminal: terminal, colors: terminal && colors, column: c}
	}
	shared := &column{}
	answer, notes = newPage(out, shared), newPage(notices, shared)
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
	_, _ = io.WriteString(p.w, text) // if the terminal is gone, so is the process
}

// end ends the current line if it is incomplete.
func (p *page) end() {
	if p.column.open {
		_, _ = io.WriteString(p.w, "\n")
		p.column.open = false
	}
}

// writeLine writes a text in lines of its own, each with a prefix.
func (p *page) writeLine(prefix string, s style, format string, args ...any) {
	p.end()
	for text := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		p.write(prefix+text+"\n", s)
	}
}
