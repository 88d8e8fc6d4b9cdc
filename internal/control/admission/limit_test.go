package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseLimits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Limits{
		"openai=32":                       {"openai": {Calls: 32}},
		"openai=600rpm":                   {"openai": {PerMinute: 600}},
		"openai=32/600rpm, my-server=1":   {"openai": {32, 600}, "my-server": {Calls: 1}},
		"openai-responses=5,openai=10rpm": {"openai-responses": {Calls: 5}, "openai": {PerMinute: 10}},
		"":                                nil,
		"openai":                          nil,
		"openai=":                         nil,
		"openai=0":                        nil,
		"openai=-1":                       nil,
		"openai=5/":                       nil,
		"openai=/5rpm":                    nil,
		"openai=5rpm/5":                   nil,
		"openai=5/0rpm":                   nil,
		"openai=200000":                   nil,
		"openai=5/9000000rpm":             nil,
		"openai=99999999999":              nil,
		"openai/gpt-5=5":                  nil,
		"OpenAI=5":                        nil,
		"openai=5,openai=6":               nil,
	} {
		got, err := ParseLimits(text)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != nil) {
			t.Errorf("%q: %v, limits (-want +got):\n%s", text, err, diff)
		}
		if want == nil {
			continue
		}
		if again, err := ParseLimits(got.String()); err != nil || !cmp.Equal(again, got) {
			t.Errorf("%q as text = %q, %v, want the same limits", text, got, err)
		}
	}
}
