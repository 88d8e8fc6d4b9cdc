package agents_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agents"
)

func TestYAML(t *testing.T) {
	t.Parallel()
	d := parse(t, complete)
	d.Instructions = "You help customers.\nBe brief.\n"
	got, err := d.YAML()
	if err != nil {
		t.Fatal(err)
	}
	const want = `name: support
description: Answers customers.
model: openai/gpt-5-mini
instructions: |
  You help customers.
  Be brief.
tools:
  - get_order
  - mcp:github/*
  - client:*
limits:
  turns: 5
  tokens: 1000
  duration: 1m30s
  parallelTools: 2
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := (&agents.Definition{Name: "a"}).YAML(); err == nil {
		t.Error("YAML of a definition without a model: got no error, want one")
	}
}

// FuzzYAML checks that the YAML of any definition is parsed to the same definition.
func FuzzYAML(f *testing.F) {
	for _, text := range []string{
		"", "x", "one\ntwo", "one\ntwo\n\n\n", " lead\n  more\n", "\nfirst is empty", "blank \nends\t\n", "tab\n\tbegins", "# no comment\n- no: list",
		"a\r\nb\r", "next\u0085line\n", "para\u2029graph\n", "\ufeffmark\n", "bell\a\n", "emoji 😀\n", "---\nname: b\n...\n", "yes", "null", "12", "2024-01-01", "~", "\t\n", " \n", "\x7f\n", "\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := &agents.Definition{Name: "a", Model: "p/m", Instructions: text, Description: text, State: agents.State{Visible: true}}
		if d.Validate() != nil {
			return
		}
		file, err := d.YAML()
		if err != nil {
			t.Fatal(err)
		}
		back, err := agents.Parse("a.yaml", file)
		if err != nil {
			t.Fatalf("%v in\n%s", err, file)
		}
		if back.Revision() != d.Revision() {
			t.Errorf("instructions %q as YAML: got %q, want the same in\n%s", text, back.Instructions, file)
		}
	})
}

// FuzzParseJSON checks that JSON of any encoder is parsed to its meaning.
func FuzzParseJSON(f *testing.F) {
	for _, text := range []string{"", "plain", `back\slash`, `\ud83d\ude00`, "smile 😀\n\ttab", "</script>&", "\u2028", "\x00\x1f\x7f", "\ufeff", "\u0085"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := &agents.Definition{Name: "a", Model: "p/m", Instructions: text}
		if d.Validate() != nil {
			return
		}
		body, err := json.MarshalIndent(d, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		for _, body := range []string{string(body), ascii(string(body))} {
			got, err := agents.ParseJSON("", []byte(body))
			if err != nil {
				t.Fatalf("%v in %s", err, body)
			}
			if got.Instructions != text {
				t.Errorf("instructions %q as JSON: got %q, want the same in %s", text, got.Instructions, body)
			}
		}
	})
}

// ascii returns JSON of an encoder that escapes all non-ASCII characters and slashes.
func ascii(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '/':
			b.WriteString(`\/`)
		case r < 0x80:
			b.WriteRune(r)
		case r < 0x10000:
			b.WriteString(escaped(r))
		default:
			b.WriteString(escaped(0xd800 + (r-0x10000)>>10))
			b.WriteString(escaped(0xdc00 + (r-0x10000)&0x3ff))
		}
	}
	return b.String()
}

// escaped returns the JSON escape of a UTF-16 code unit.
func escaped(unit rune) string {
	const digits = "0123456789ABCDEF"
	return `\u` + string([]byte{digits[unit>>12&15], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15]})
}
