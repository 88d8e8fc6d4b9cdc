package stream_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// said returns a message of a user.
func said(text string) agui.Message {
	return agui.Message{ID: "m", Role: agui.RoleUser, Content: agui.TextContent(text)}
}

func TestTitleIsBeginningOfFirstUserMessage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"What is 12*7, and what time is it?":                       "What is 12*7, and what time is it?",
		"  two\n\n lines\tand a tab ":                              "two lines and a tab",
		"# Plan\n\n- **first** _second_\n- `third`":                "Plan first second third",
		"> quoted\n\n1. one\n2) two":                               "quoted one two",
		"see [the order](https://shop.example/42) ![a cat](c.png)": "see the order a cat",
		"```go\nfunc main() {}\n```\nWhy?":                         "func main() {} Why?",
		"rename snake_case_name and 2 * 3 * 4":                     "rename snake_case_name and 2 * 3 * 4",
		"~~old~~ new\n---\nnext":                                   "old new next",
		"a\u202eb\u2066c\u0007d\x00e\u200bf":                       "abcdef",
		"\xff\xfeinvalid":                                          "invalid",
		"family 👨\u200d👩\u200d👧":                                   "family 👨\u200d👩\u200d👧",
		"\u202e\u200b":                                             "",
		strings.Repeat("word ", 40):                                strings.TrimSpace(strings.Repeat("word ", 16)) + "…",
		strings.Repeat("x", 81):                                    strings.Repeat("x", 79) + "…",
		strings.Repeat("x", 80):                                    strings.Repeat("x", 80),
		strings.Repeat("日", 100):                                   strings.Repeat("日", 79) + "…",
		strings.Repeat("x", 78) + "e\u0301y":                       strings.Repeat("x", 78) + "…",
	} {
		got := stream.Title([]agui.Message{{ID: "s", Role: agui.RoleSystem, Content: agui.TextContent("be nice")}, said(" "), said(text), said("later")})
		if text == "\u202e\u200b" {
			want = "later"
		}
		if got != want {
			t.Errorf("title of %q: got %q, want %q", text, got, want)
		}
		if !stream.IsTitle(got) {
			t.Errorf("title of %q: IsTitle(%q) = false", text, got)
		}
	}
	if got := stream.Title([]agui.Message{{ID: "a", Role: agui.RoleAssistant, Content: agui.TextContent("hello")}}); got != "" {
		t.Errorf("title without a user's message: got %q, want none", got)
	}
}

func TestModelTitleIsFirstLineOfAnswer(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"Multiplication and time":                          "Multiplication and time",
		"\n\n  \"Multiplication\"\n\nThis title is short.": "Multiplication",
		"“Größen”":                                         "Größen",
		"„Größen“":                                         "Größen",
		"「日本」":                                             "日本",
		"**Plan** for _May_":                               "Plan for May",
		"```\nPlan\n```":                                   "Plan",
		"\"Yes\" and \"No\"":                               "\"Yes\" and \"No\"",
		"What is \"yes\"":                                  "What is \"yes\"",
		"\"":                                               "\"",
		"a\u202eb\u2066c\u0007d\x1b[31m\u200b":             "abcd[31m",
		"\xffbroken":                                       "broken",
		"\u202e\n \n":                                      "",
		"":                                                 "",
		strings.Repeat("word ", 40):                        strings.TrimSpace(strings.Repeat("word ", 16)) + "…",
		strings.Repeat("\u200b", 2000) + "late":            "",
		strings.Repeat("x", 80) + "\u2028" + "second line of it": strings.Repeat("x", 79) + "…",
	} {
		got := stream.ModelTitle(answer)
		if got != want {
			t.Errorf("title in %q: got %q, want %q", answer, got, want)
		}
		if !stream.IsTitle(got) {
			t.Errorf("title in %q: IsTitle(%q) = false", answer, got)
		}
	}
}

func FuzzModelTitle(f *testing.F) {
	f.Add("\"# Plan\"\n- **first** [x](y)")
	f.Fuzz(func(t *testing.T, answer string) {
		if title := stream.ModelTitle(answer); !stream.IsTitle(title) || utf8.RuneCountInString(title) > stream.MaxTitle {
			t.Errorf("title in %q: %q is not valid", answer, title)
		}
	})
}

func TestTitlePrecedence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    stream.Description
		want string
	}{
		{stream.Description{}, ""},
		{stream.Description{DerivedTitle: "derived"}, "derived"},
		{stream.Description{DerivedTitle: "derived", ModelTitle: "model's"}, "model's"},
		{stream.Description{DerivedTitle: "derived", ModelTitle: "model's", GivenTitle: "given"}, "given"},
	} {
		if got := c.d.Title(); got != c.want {
			t.Errorf("title of %+v: got %q, want %q", c.d, got, c.want)
		}
	}
}

func FuzzTitle(f *testing.F) {
	f.Add("# Plan\n\n- **first** [x](y)")
	f.Add(strings.Repeat("👨\u200d👩", 50))
	f.Fuzz(func(t *testing.T, text string) {
		title := stream.Title([]agui.Message{said(text)})
		if !stream.IsTitle(title) || utf8.RuneCountInString(title) > stream.MaxTitle || strings.ContainsAny(title, "\n\r\u202e\u2066\x00") {
			t.Errorf("title of %q: %q is not valid", text, title)
		}
	})
}

func TestInvalidTitles(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"two\nlines", "a\u202eb", "tab\there", " space", strings.Repeat("x", 81), "\xff", "line\u2028separator"} {
		if stream.IsTitle(text) {
			t.Errorf("IsTitle(%q) = true, want false", text)
		}
	}
}
