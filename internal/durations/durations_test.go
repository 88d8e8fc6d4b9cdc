package durations_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/internal/durations"
)

// TestParse: days may stand before the units of Go.
func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "3d": 72 * time.Hour, "1d12h": 36 * time.Hour, "0d": 0, "99999d": 99999 * 24 * time.Hour,
	} {
		if got, err := durations.Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "3", "1h2d", "3dd", "-3d", "100000d", "three days"} {
		if got, err := durations.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %s, want an error", text, got)
		}
	}
}
