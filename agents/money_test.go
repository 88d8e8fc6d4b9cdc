package agents_test

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/agents"
)

func TestMoney(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]agents.Money{
		"2": 2_000_000, "0.25": 250_000, "0.000001": 1, "2.50": 2_500_000, "999999999.999999": 999_999_999_999_999, "0": 0,
	} {
		if m, err := agents.ParseMoney(text); err != nil || m != want {
			t.Errorf("%s is %d, want %d: %v", text, m, want, err)
		}
	}
	for _, text := range []string{"", "-1", "+1", ".5", "1.", "1e3", "0.0000001", "1000000000", "1,5", " 1", "0x1", "1_0"} {
		if m, err := agents.ParseMoney(text); err == nil {
			t.Errorf("%q is %d, want an error", text, m)
		}
	}
}

func FuzzMoney(f *testing.F) {
	for _, s := range []string{"2", "0.25", "0.000001", "1e3", "-1", "007.70"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := agents.ParseMoney(s)
		if err != nil {
			return
		}
		again, err := agents.ParseMoney(m.String())
		if err != nil || again != m || m < 0 {
			t.Errorf("%q = %d, written %s and read as %d (%v), want the same amount", s, m, m, again, err)
		}
		var back agents.Money
		text, err := json.Marshal(m)
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil || back != m {
			t.Errorf("%q = %s as JSON and read as %d (%v), want the same amount", s, text, back, err)
		}
	})
}
