package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// What a terminal would obey is escaped in JSON that it is shown, and the JSON says the same: a C1
// control is a whole sequence's beginning for it, as ESC [ is.
func TestJSONOnTerminal(t *testing.T) {
	t.Parallel()
	const raw = "{\n  \"content\": \"\\u001b[31m \u009b31m \u202e \u007f 你😀\"\n}\n"
	shown := jsonOnTerminal([]byte(raw))
	if i := strings.IndexFunc(string(shown), func(r rune) bool {
		return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
	}); i >= 0 {
		t.Errorf("shown %q, with a character at %d that a terminal obeys", shown, i)
	}
	var was, is map[string]string
	if err := json.Unmarshal([]byte(raw), &was); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(shown, &is); err != nil || is["content"] != was["content"] {
		t.Errorf("shown %q says %q, %v, want %q", shown, is["content"], err, was["content"])
	}
}
