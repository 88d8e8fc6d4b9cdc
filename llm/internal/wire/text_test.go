package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestUnquote(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`""`:                 "",
		`"abc"`:              "abc",
		`"\"\\\/\b\f\n\r\t"`: "\"\\/\b\f\n\r\t",
		`"\u00E9\u20ac"`:     "é€",
		`"\ud83d\ude00!"`:    "😀!",
		`"\ud83d"`:           "\xed\xa0\xbd",
		`"\ude00"`:           "\xed\xb8\x80",
		`"\ud83d\u0041"`:     "\xed\xa0\xbdA",
		"\"\xff\"":           "\xff",
	} {
		if got, ok := Unquote(raw); !ok || got != want {
			t.Errorf("Unquote(%s) is (%q, %v), want %q", raw, got, ok, want)
		}
	}
	for _, raw := range []string{"", `"`, "null", "1", `["a"]`, `a"`} {
		if got, ok := Unquote(raw); ok {
			t.Errorf("Unquote(%s) is %q, want no string", raw, got)
		}
	}
}

// FuzzUnquote: wherever encoding/json accepts the text, the result is equal to json's after
// mending.
func FuzzUnquote(f *testing.F) {
	for _, seed := range []string{`"a"`, `"\ud83d\ude00"`, `"\ud83dx"`, `"\ud83d\ud83d\ude00"`, "\"\xed\xa0\"", `"\u"`, `"\`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, ok := Unquote(raw)
		var want string
		// Ill-formed bytes differ: json replaces each byte, and unquote keeps them for the mender.
		if !utf8.ValidString(raw) || json.Unmarshal([]byte(raw), &want) != nil || raw != strings.TrimSpace(raw) || raw == "null" {
			return
		}
		var m Mender
		if mended := m.Mend(got) + m.Flush(); !ok || mended != want {
			t.Errorf("Unquote(%q) is (%q, %v), want %q", raw, mended, ok, want)
		}
	})
}

// FuzzMender: the pieces are valid, and the places where the text is cut do not change the result.
func FuzzMender(f *testing.F) {
	f.Add("a€b", 2, 3)
	f.Add("\xed\xa0\xbd\xed\xb8\x80", 3, 4)
	f.Add("\xed\xa0\xbd\xed\xa0\xbd\xed\xb8\x80", 1, 5)
	f.Add("\xf0\x9f\x98", 1, 1)
	f.Fuzz(func(t *testing.T, text string, i, j int) {
		if i < 0 || j < i || j > len(text) {
			return
		}
		var whole, cut Mender
		want := whole.Mend(text) + whole.Flush()
		got := ""
		for _, piece := range []string{text[:i], text[i:j], "", text[j:]} {
			mended := cut.Mend(piece)
			if !utf8.ValidString(mended) {
				t.Errorf("Mend(%q) = %q, want UTF-8", piece, mended)
			}
			got += mended
		}
		got += cut.Flush()
		if got != want {
			t.Errorf("cut at %d and %d, %q: got %q, want %q", i, j, text, got, want)
		}
		if utf8.ValidString(text) && got != text {
			t.Errorf("mended valid text %q = %q, want the same", text, got)
		}
	})
}
