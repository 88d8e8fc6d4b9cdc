package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// isTerminal reports whether a reader or writer is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// isTerminalControl reports whether a terminal would interpret a character instead of showing it:
// control characters, and those that change the direction of text.
func isTerminalControl(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// onTerminal replaces the characters that a terminal would interpret, except line feeds and tabs.
// Texts of models, tools and other people could otherwise change what the terminal shows.
func onTerminal(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case isTerminalControl(r):
			return '\uFFFD'
		}
		return r
	}, text)
}

// jsonOnTerminal escapes the characters of a JSON text that a terminal would interpret. The value
// stays the same: such characters occur only in strings, in which JSON allows escapes (RFC 8259,
// section 7).
func jsonOnTerminal(raw []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(raw) {
		if isTerminalControl(r) && r != '\n' && r != '\t' {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// writeJSON writes JSON unchanged, or escaped if w is a terminal.
func writeJSON(w io.Writer, raw []byte) error {
	if isTerminal(w) {
		raw = jsonOnTerminal(raw)
	}
	_, err := w.Write(raw)
	return err
}

// oneLine returns a text as one line of at most maxChars characters, safe for a terminal.
func oneLine(text string, maxChars int) string {
	text = strings.Join(strings.Fields(onTerminal(text)), " ")
	runes := []rune(text)
	if len(runes) > maxChars {
		return string(runes[:maxChars-1]) + "…"
	}
	return text
}

// document writes a response of the API as indented JSON; an empty one as {}.
func document(w io.Writer, raw json.RawMessage) error {
	var b bytes.Buffer
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	return writeJSON(w, b.Bytes())
}

// eventLine writes an event and its cursor as one line of JSON.
func eventLine(w io.Writer, cursor string, event json.RawMessage) error {
	encoded, err := json.Marshal(struct {
		Cursor string          `json:"cursor,omitempty"`
		Event  json.RawMessage `json:"event"`
	}{cursor, event})
	if err != nil {
		return err
	}
	return writeJSON(w, append(encoded, '\n'))
}

// jsonOf encodes a value of this package as JSON.
func jsonOf(value any) (json.RawMessage, error) { return json.Marshal(value) }

// cellWidth is the maximal width of a cell in characters, except the last one of a row.
const cellWidth = 80

// table writes rows in aligned columns. It shortens long cells, and writes "-" for empty ones.
func table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			width := cellWidth
			if i == len(row)-1 {
				width = maxQuotedChars
			}
			if row[i] = oneLine(cell, width); row[i] == "" {
				row[i] = "-"
			}
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

// printResult writes the result of a command: as JSON with --json, otherwise as a table. next is
// the cursor of the next page, which it prints as a notice; "" = there is none.
func (e *environment) printResult(cmd *cobra.Command, raw json.RawMessage, next string, rows [][]string) error {
	if e.json {
		return document(cmd.OutOrStdout(), raw)
	}
	if err := table(cmd.OutOrStdout(), rows); err != nil {
		return err
	}
	if next != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "Next page: --cursor %s\n", next)
	}
	return nil
}

// printDone reports that a command without other output has succeeded; with --json it writes {}.
func (e *environment) printDone(cmd *cobra.Command, format string, args ...any) error {
	if e.json {
		return document(cmd.OutOrStdout(), nil)
	}
	fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return nil
}

// ago returns the time since t in one unit, rounded down; "" for the zero time.
func ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := time.Since(t)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// yesOrEmpty returns "yes", or "" for false.
func yesOrEmpty(value bool) string {
	if value {
		return "yes"
	}
	return ""
}
