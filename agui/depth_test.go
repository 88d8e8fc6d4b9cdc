package agui

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// nested returns a JSON value with the given depth, of lists and objects in turn.
func nested(levels int) string {
	var open, closing strings.Builder
	for i := range levels {
		if i%2 == 0 {
			open.WriteString(`[`)
			closing.WriteString(`]`)
		} else {
			open.WriteString(`{"}]":`)
			closing.WriteString(`}`)
		}
	}
	end := []byte(closing.String())
	for i, j := 0, len(end)-1; i < j; i, j = i+1, j-1 {
		end[i], end[j] = end[j], end[i]
	}
	return open.String() + "1" + string(end)
}

func TestTooDeep(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"":                                         false,
		nested(MaxDepth):                           false,
		nested(MaxDepth + 1):                       true,
		nested(100_000):                            true,
		strings.Repeat("[", 513):                   true, // not JSON
		strings.Repeat("]", 600):                   false,
		`"` + strings.Repeat("[", 600):             false,
		`"` + strings.Repeat(`\"[`, 600) + `"`:     false,
		"[" + strings.Repeat("[],", 600) + "[]]":   false,
		`{"a":"` + strings.Repeat("{", 600) + `"}`: false,
	} {
		if got := TooDeep([]byte(text)); got != want {
			t.Errorf("%.40s… of %d bytes: too deep is %v, want %v", text, len(text), got, want)
		}
	}
}

// TestDeepInput: input that is nested too deeply is refused with the member's name. It could be
// stored, but not be read again.
func TestDeepInput(t *testing.T) {
	t.Parallel()
	const message = `"messages":[{"id":"u","role":"user","content":"x"}]`
	for pointer, format := range map[string]string{
		"/state":                   `{"threadId":"t","runId":"r",` + message + `,"state":%s}`,
		"/forwardedProps":          `{"threadId":"t","runId":"r",` + message + `,"forwardedProps":{"a":%s}}`,
		"/later":                   `{"threadId":"t","runId":"r",` + message + `,"later":%s}`,
		"/tools/0/parameters":      `{"threadId":"t","runId":"r",` + message + `,"tools":[{"name":"n","description":"d","parameters":%s}]}`,
		"/messages/0/metadata":     `{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"x","metadata":{"a":%s}}]}`,
		"/messages/0/mood":         `{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"x","mood":%s}]}`,
		"/messages/0/content":      `{"threadId":"t","runId":"r","messages":[{"id":"u","role":"activity","activityType":"a","content":{"a":%s}}]}`,
		"/messages/0/content/0/is": `{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":[{"type":"text","text":"x","is":%s}]}]}`,
	} {
		for _, levels := range []int{MaxDepth + 1, 9_990, 100_000} {
			_, err := DecodeInput(fmt.Appendf(nil, format, nested(levels)))
			var wrong *DecodeError
			if !errors.As(err, &wrong) || !strings.Contains(wrong.Detail, "deeper than 512 levels") {
				t.Errorf("%s with %d levels: got %v, want a depth error", pointer, levels, err)
				continue
			}
			// Beyond the depth that encoding/json reads, the outermost member is named.
			if wrong.Pointer != pointer && (levels < 10_000 || !strings.HasPrefix(pointer, wrong.Pointer) || wrong.Pointer == "") {
				t.Errorf("%s with %d levels: pointer = %q, want the place that is too deep", pointer, levels, wrong.Pointer)
			}
		}
		in, err := DecodeInput(fmt.Appendf(nil, format, nested(MaxDepth-2)))
		if err != nil {
			t.Errorf("%s with %d levels: %v", pointer, MaxDepth-2, err)
			continue
		}
		stored, err := json.Marshal(map[string]any{"input": map[string]any{"of": in}})
		if err != nil {
			t.Fatal(err)
		}
		var back struct{ Input struct{ Of RunAgentInput } }
		if err := json.Unmarshal(stored, &back); err != nil {
			t.Errorf("%s with %d levels cannot be read again: %v", pointer, MaxDepth-2, err)
		}
	}
}

// TestDeepPatch: no sequence of small changes makes a state that cannot be stored.
func TestDeepPatch(t *testing.T) {
	t.Parallel()
	state, path := json.RawMessage(`{}`), ""
	for range 20 {
		value := nested(2 * 50)
		patch, err := json.Marshal([]any{map[string]any{"op": "add", "path": path + "/a", "value": json.RawMessage(`{"b":` + value + `}`)}})
		if err != nil {
			t.Fatal(err)
		}
		next, err := Patch(state, patch)
		if errors.Is(err, ErrPatch) {
			if TooDeep(state) {
				t.Errorf("state of %d bytes is too deep before the patch, want less", len(state))
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		state = next
		path += "/a/b" + strings.Repeat("/0/}]", 49) + "/0"
		if state, err = Patch(state, json.RawMessage(`[{"op":"replace","path":"`+path+`","value":{}}]`)); err != nil {
			t.Fatal(err)
		}
	}
	t.Error("the state grew without end")
}

func FuzzTooDeep(f *testing.F) {
	f.Add([]byte(nested(MaxDepth)))
	f.Add([]byte(nested(MaxDepth + 1)))
	f.Add([]byte(`{"a":"\\\"[["` + strings.Repeat("[", 600)))
	f.Add([]byte(`"` + strings.Repeat("[", 600)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		deep := TooDeep(raw)
		if json.Valid(raw) && deep != (levelsOf(raw) > MaxDepth) {
			t.Errorf("TooDeep = %v for %d levels, want true above %d", deep, levelsOf(raw), MaxDepth)
		}
	})
}

// levelsOf counts the levels with the standard library's reader.
func levelsOf(raw []byte) (most int) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return most
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
			most = max(most, depth)
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
}
