package narration

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestArgumentOfPartialJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{``, ``},
		{`{`, ``},
		{`{"doc`, ``},
		{`{"document"`, ``},
		{`{"document":`, ``},
		{`{"document": "`, `""`},
		{`{"document":"Dear `, `"Dear "`},
		{`{"document":"a\`, `"a"`},
		{`{"document":"a\"`, `"a\""`},
		{`{"document":"a\u00e`, `"a"`},
		{`{"document":"a\u00e9`, `"a\u00e9"`},
		{`{"document":"a\ud83d`, `"a"`},
		{`{"document":"a\ud83d\`, `"a"`},
		{`{"document":"a\ud83d\ude0`, `"a"`},
		{`{"document":"a\ud83d\ude00`, `"a\ud83d\ude00"`},
		{`{"document":"a\ud83dx`, `"a\ud83dx"`},
		{`{"document":"a\ud83d\nx`, `"a\ud83d\nx"`},
		{`{"document":"ab"`, `"ab"`},
		{`{"document":"ab","title":"x"}`, `"ab"`},
		{`{"title":{"document":"no"},"document":"ye`, `"ye"`},
		{`{"document":"one","document":"two`, `"two"`},
		{`{"document":[{"t":"a`, `[{"t":"a"}]`},
		{`{"document":[{"t":"a"},{"t`, `[{"t":"a"},{}]`},
		{`{"document":[{"t":"a","n":1`, `[{"t":"a"}]`},
		{`{"document":[{"t":"a","n":12,`, `[{"t":"a","n":12}]`},
		{`{"document":tru`, ``},
		{`{"document":true}`, `true`},
		{`{"document":12`, ``},
		{`{"document":null,`, `null`},
		{`["document"`, ``},
		{`{"document":"a"]`, `"a"`},
		{`{"document":}`, ``},
		{`{"document":"a` + "\n", ``},
	} {
		if got := argument([]byte(c.text), "document"); string(got) != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
}

// FuzzArgument checks that each prefix of the arguments gives valid JSON, and that the whole gives
// the whole value. A text only grows.
func FuzzArgument(f *testing.F) {
	for _, seed := range []string{
		`{"a":"x\u00e9\ud83d\ude00\"y","b":[1,{"c":null}]}`, `{"b":{"a":1},"a":[[],{}, "t" ]}`, `{"a":-1.5e3}`, `{"a":"\ud83d"}`, `{]`, `[`, "\"",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<10 { // the test reads each prefix
			return
		}
		var whole map[string]json.RawMessage
		valid := json.Unmarshal([]byte(text), &whole) == nil
		before := ""
		for n := range len(text) + 1 {
			value := argument([]byte(text[:n]), "a")
			if value != nil && !json.Valid(value) {
				t.Fatalf("Argument of %q = %q, want JSON", text[:n], value)
			}
			var now string
			if !valid || strings.Count(text, `"a"`) > 1 || json.Unmarshal(value, &now) != nil {
				continue
			}
			if !strings.HasPrefix(now, before) && strings.ToValidUTF8(text[:n], "") == text[:n] {
				t.Fatalf("Argument of %q = %q, want a continuation of %q", text[:n], now, before)
			}
			before = now
		}
		if got := argument([]byte(text), "a"); valid && string(got) != string(whole["a"]) {
			t.Fatalf("%q: got %q, want %q", text, got, whole["a"])
		}
	})
}
