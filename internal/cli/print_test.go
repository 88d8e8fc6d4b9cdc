package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// TestJSONOnTerminal: control characters are escaped in JSON that goes to a terminal, and the JSON
// keeps its value. A C1 control starts an escape sequence in the same way as "ESC [".
func TestJSONOnTerminal(t *testing.T) {
	t.Parallel()
	const raw = "{\n  \"content\": \"\\u001b[31m \u009b31m \u202e \u007f 你😀\"\n}\n"
	shown := jsonOnTerminal([]byte(raw))
	if i := strings.IndexFunc(string(shown), func(r rune) bool {
		return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
	}); i >= 0 {
		t.Errorf("shown text = %q, want no control character at %d", shown, i)
	}
	var was, is map[string]string
	if err := json.Unmarshal([]byte(raw), &was); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(shown, &is); err != nil || is["content"] != was["content"] {
		t.Errorf("value of the JSON %q: got %q, %v, want %q", shown, is["content"], err, was["content"])
	}
}
