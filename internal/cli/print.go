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

// isTerminal tells whether somebody looks at a stream, or types into it.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// obeyed tells whether a terminal would do something at a character instead of showing it: move its cursor, change
// its colors, or turn the order of its letters.
func obeyed(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// onTerminal makes a text harmless that models, tools or strangers wrote: without what a terminal would obey.
func onTerminal(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case obeyed(r):
			return '\uFFFD'
		}
		return r
	}, text)
}

// jsonOnTerminal makes JSON harmless by writing what a terminal would obey as escapes: it says the same. Such
// characters stand in texts alone, where JSON leaves those from U+007F on as they are.
func jsonOnTerminal(raw []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(raw) {
		if obeyed(r) && r != '\n' && r != '\t' {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// writeJSON writes JSON as it is, or harmless where somebody looks at it.
func writeJSON(w io.Writer, raw []byte) error {
	if isTerminal(w) {
		raw = jsonOnTerminal(raw)
	}
	_, err := w.Write(raw)
	return err
}

// line makes a text one short line.
func line(text string, most int) string {
	text = strings.Join(strings.Fields(onTerminal(text)), " ")
	runes := []rune(text)
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// document writes an answer as it came, indented.
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

// eventLine writes an event as a line of JSON, with the cursor behind it.
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

// jsonOf is a value of this package as JSON.
func jsonOf(value any) (json.RawMessage, error) { return json.Marshal(value) }

// cellWidth is the most characters of a cell. The last one of a row may be longer.
const cellWidth = 80

// table writes rows in columns.
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

// answer writes a list: the document if JSON is asked for, else a table, and how to go on.
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

// done says what a command did that has no other answer.
func (e *environment) done(cmd *cobra.Command, format string, args ...any) error {
	if e.json {
		return document(cmd.OutOrStdout(), nil)
	}
	fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return nil
}

// ago is how long ago something was, roughly.
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

// yes is a cell that is empty for no.
func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}
