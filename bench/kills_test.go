package main

import (
	"errors"
	"sync/atomic"
	"testing"
)

// survivorOf returns a survivor whose worker was killed 1 ms ago, unless killed is false.
func survivorOf(killed bool) *survivor {
	v := &survivor{killed: &atomic.Int64{}, spoke: func() {}}
	if killed {
		v.killed.Store(micros() - 1000)
	}
	return v
}

func TestSurvivorMeasuresTheNextAttempt(t *testing.T) {
	t.Parallel()
	v := survivorOf(false)
	if err := v.event(line(0, 20, 0)); err != nil {
		t.Fatal(err)
	}
	v.killed.Store(micros() - 1000)
	for _, l := range [][]byte{line(20, 22, 0), line(0, 1, 0), line(1, tokensPerRun, 0)} {
		if err := v.event(l); err != nil {
			t.Fatal(err)
		}
	}
	if v.took < 1000 || v.tokens != tokensPerRun {
		t.Errorf("took %d µs with %d tokens, want at least 1000 and all tokens of the last attempt", v.took, v.tokens)
	}
}

func TestSurvivorOnAnotherWorkerIsNotMeasured(t *testing.T) {
	t.Parallel()
	v := survivorOf(true)
	if err := v.event(line(0, tokensPerRun, 0)); err != nil {
		t.Fatal(err)
	}
	if v.took != 0 {
		t.Errorf("took %d µs, want 0: there was one attempt", v.took)
	}
}

func TestSurvivorRefusesInvalidRuns(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		killed bool
		lines  [][]byte
	}{
		"a token is lost":                {true, [][]byte{line(0, 3, 0), line(4, 5, 0)}},
		"a second attempt without kill":  {false, [][]byte{line(0, 3, 0), line(0, 1, 0)}},
		"a third attempt after one kill": {true, [][]byte{line(0, 3, 0), line(0, 1, 0), line(0, 1, 0)}},
	} {
		v := survivorOf(test.killed)
		var err error
		for _, l := range test.lines {
			if err = v.event(l); err != nil {
				break
			}
		}
		if !errors.Is(err, errRun) {
			t.Errorf("%s: got %v, want %v", what, err, errRun)
		}
	}
}
