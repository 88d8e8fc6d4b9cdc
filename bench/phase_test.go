package main

import (
	"testing"
	"time"
)

func TestRunsOfAWaveBeginTogether(t *testing.T) {
	t.Parallel()
	ph := phase{concurrency: 50, every: 2 * time.Second}
	if got := ph.users(); got != 100 {
		t.Fatalf("users = %d, want 100", got)
	}
	for _, test := range []struct {
		user, n int
		want    time.Duration
	}{
		{0, 0, 0},
		{49, 0, 0},
		{50, 0, 2 * time.Second},
		{99, 0, 2 * time.Second},
		{49, 1, 4 * time.Second},
		{50, 1, 6 * time.Second},
	} {
		if got := ph.begin(test.user, test.n); got != test.want {
			t.Errorf("begin(%d, %d) = %s, want %s", test.user, test.n, got, test.want)
		}
	}
}

func TestFirstRunsAreSpread(t *testing.T) {
	t.Parallel()
	ph := phase{concurrency: 4, spread: 2 * time.Second}
	if got := ph.users(); got != 4 {
		t.Fatalf("users = %d, want 4", got)
	}
	if got := ph.begin(3, 0); got != 1500*time.Millisecond {
		t.Errorf("begin of the last user's first run = %s, want 1.5s", got)
	}
	if got := ph.begin(3, 1); got != 0 {
		t.Errorf("begin of the last user's second run = %s, want 0: at once", got)
	}
}
