package agents

import (
	"fmt"
	"strings"
)

// DefinitionError is one mistake in a definition. Functions of this package join several.
type DefinitionError struct {
	File   string // "" for a definition that is not from a file
	Agent  string // the agent of a definition made in Go; "" otherwise
	Line   int    // from 1; 0 if the error has no place
	Column int    // from 1; 0 if the error has no column
	Key    string // the wrong key, such as limits.turns; "" = the whole file
	Reason string // the mistake, with the key's name
}

func (e *DefinitionError) Error() string {
	var b strings.Builder
	switch {
	case e.File != "":
		b.WriteString(e.File)
	case e.Agent != "":
		fmt.Fprintf(&b, "agent definition %q", e.Agent)
	default:
		b.WriteString("agent definition")
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	return b.String() + ": " + e.Reason
}

// Pointer returns the key as a JSON pointer, such as /tools/2; "" if it is the whole document.
func (e *DefinitionError) Pointer() string {
	if e.Key == "" {
		return ""
	}
	return "/" + strings.NewReplacer("~", "~0", "/", "~1", ".", "/", "[", "/", "]", "").Replace(e.Key)
}

// suggestion returns a text for an error that proposes the candidate most similar to a misspelled
// name; "" = none is similar enough.
func suggestion(typed string, candidates []string) string {
	best, least := "", 3
	for _, candidate := range candidates {
		if d := distance(strings.ToLower(typed), strings.ToLower(candidate), least); d < least {
			best, least = candidate, d
		}
	}
	// Two edits turn any word of three letters into any other.
	if best == "" || least*2 > len(best) {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// distance returns the number of edits from a to b (optimal string alignment: a swap of neighbors
// is one edit), or limit if there are more.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
