package main

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// line returns a model's tokens from one index to another, the i-th at the time at + i.
func line(from, to int, at int64) []byte {
	var text []byte
	for i := from; i < to; i++ {
		text = appendToken(text, i, at+int64(i), 0)
	}
	return fmt.Appendf(nil, `data: {"delta":"%s"}`, text)
}

func TestSpokenMeasuresDelegation(t *testing.T) {
	t.Parallel()
	var s spoken
	half := tokensPerRun / 2
	for _, l := range [][]byte{
		line(0, half, 1000), line(half, tokensPerRun, 1000), line(0, tokensPerRun, 5000), []byte(`data: {"other":1}`), line(0, tokensPerRun, 9000),
	} {
		if err := s.listen(l, dialectAGUI); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.handed()
	if want := (4000 - tokensPerRun + 1) * time.Microsecond; err != nil || got != want {
		t.Errorf("handed = %v, %v; want %v", got, err, want)
	}
}

func TestSpokenRefusesIncompleteOutput(t *testing.T) {
	t.Parallel()
	for what, lines := range map[string][][]byte{
		"one model":         {line(0, tokensPerRun, 0)},
		"a token is lost":   {line(0, 3, 0), line(4, tokensPerRun, 0), line(0, tokensPerRun, 0), line(0, tokensPerRun, 0)},
		"the end is lost":   {line(0, 3, 0), line(0, tokensPerRun, 0), line(0, tokensPerRun, 0)},
		"a token is twice":  {line(0, 3, 0), line(2, 3, 0)},
		"it begins with #1": {line(1, 2, 0)},
	} {
		var s spoken
		var err error
		for _, l := range lines {
			if err = s.listen(l, dialectAGUI); err != nil {
				break
			}
		}
		if err == nil {
			_, err = s.handed()
		}
		if !errors.Is(err, errRun) {
			t.Errorf("%s: got %v, want %v", what, err, errRun)
		}
	}
}
