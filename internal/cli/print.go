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

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// isTerminalControl reports whether a terminal interprets a character instead of showing it:
// control characters and those that change the direction of text.
func isTerminalControl(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// onTerminal replaces the characters of a text of models, tools or other people that a terminal
// would interpret.
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

// jsonOnTerminal escapes the characters of JSON that a terminal would interpret; the value stays
// the same. Such characters occur only in strings: JSON itself escapes those below U+0020.
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

// line shortens a text to one line of at most that many characters.
func line(text string, most int) string {
	text = strings.Join(strings.Fields(onTerminal(text)), " ")
	runes := []rune(text)
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// document writes the response of the API, indented.
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

// cellWidth is the most characters of a cell, except the last one of a row.
const cellWidth = 80

// table writes rows in aligned columns.
func table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			width := cellWidth
			if i == len(row)-1 {
				width = longest
			}
			if row[i] = line(cell, width); row[i] == "" {
				row[i] = "-"
			}
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

// answer writes a list: as JSON with --json, else as a table with the cursor of the next page.
func (e *environment) answer(cmd *cobra.Command, raw json.RawMessage, next string, rows [][]string) error {
	if e.json {
		return document(cmd.OutOrStdout(), raw)
	}
	if err := table(cmd.OutOrStdout(), rows); err != nil {
		return err
	}
	if next != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "There are more: --cursor %s\n", next)
	}
	return nil
}

// done reports the effect of a command that has no other output.
func (e *environment) done(cmd *cobra.Command, format string, args ...any) error {
	if e.json {
		return document(cmd.OutOrStdout(), nil)
	}
	fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return nil
}

// ago describes roughly how long ago a time was.
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

// yes returns "yes", or "" for false.
func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}
