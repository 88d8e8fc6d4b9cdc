package main

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
)

// stream returns a run of n tokens, in our own encoding. The i-th token is sent at time i.
func stream(t *testing.T, n int, end ...agui.Event) []string {
	t.Helper()
	var token []byte
	events := []agui.Event{&agui.RunStarted{ThreadID: "t", RunID: "r"}, &agui.TextMessageStart{MessageID: "m"}}
	for i := range n {
		token = appendToken(token[:0], i, int64(i), 0)
		events = append(events, &agui.TextMessageContent{MessageID: "m", Delta: string(token)})
	}
	var frames []string
	for i, e := range append(events, end...) {
		data, err := agui.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, fmt.Sprintf("id: %d\ndata: %s\n\n", i, data))
	}
	return frames
}

var finished = &agui.RunFinished{ThreadID: "t", RunID: "r"}

// scanFrames scans frames as a benchmark does.
func scanFrames(frames []string) (*sample, error) {
	s := &sample{}
	sc := scan{dialect: dialectAGUI, wanted: tokensPerRun, sample: s, started: -5}
	return s, sc.read(bufio.NewReaderSize(strings.NewReader(strings.Join(frames, "")), lineBytes))
}

func TestScanReadsEncodedEvents(t *testing.T) {
	t.Parallel()
	frames := stream(t, tokensPerRun, &agui.TextMessageEnd{MessageID: "m"}, finished)
	frames = slices.Insert(frames, 3, ": heartbeat\n\n")
	s, err := scanFrames(frames)
	if err != nil {
		t.Fatal(err)
	}
	if s.events != tokensPerRun+4 || len(s.added) != tokensPerRun {
		t.Errorf("got %d events and %d tokens, want %d and %d", s.events, len(s.added), tokensPerRun+4, tokensPerRun)
	}
	if diff := cmp.Diff([]int64{5}, s.before); diff != "" {
		t.Errorf("from request to the model (-want +got):\n%s", diff)
	}
}

func TestScanReadsTokensOfOneDelta(t *testing.T) {
	t.Parallel()
	var text []byte
	for i := range tokensPerRun {
		text = appendToken(text, i, 0, 0)
	}
	frames := stream(t, 0, &agui.TextMessageContent{MessageID: "m", Delta: string(text)}, finished)
	if s, err := scanFrames(frames); err != nil || len(s.added) != tokensPerRun {
		t.Errorf("got %d tokens, %v, want %d", len(s.added), err, tokensPerRun)
	}
}

func TestScanRefuses(t *testing.T) {
	t.Parallel()
	good := stream(t, tokensPerRun, finished)
	for name, frames := range map[string][]string{
		"no terminal event":      good[:len(good)-1],
		"a token too few":        stream(t, tokensPerRun-1, finished),
		"a lost token":           slices.Delete(slices.Clone(good), 10, 11),
		"a repeated token":       slices.Insert(slices.Clone(good), 10, good[9]),
		"an event after the end": append(slices.Clone(good), good[2]),
		"a run that failed":      stream(t, tokensPerRun, &agui.RunError{Message: "no"}),
		"a delta of other text":  slices.Insert(slices.Clone(good), 10, stream(t, 0, &agui.TextMessageContent{MessageID: "m", Delta: "Hello"})[2]),
		"nothing":                nil,
	} {
		if _, err := scanFrames(frames); !errors.Is(err, errRun) {
			t.Errorf("%s: got %v, want %v", name, err, errRun)
		}
	}
}

func FuzzCutToken(f *testing.F) {
	f.Add([]byte("3.14159 "))
	f.Add([]byte("a.b "))
	f.Fuzz(func(t *testing.T, text []byte) {
		index, sent, rest, err := cutToken(text)
		if err != nil {
			return
		}
		again, _, _, err := cutToken(append(appendToken(nil, index, sent, 0), rest...))
		if err != nil || again != index || len(rest) >= len(text) {
			t.Errorf("%q: index = %d, then %d, rest %q, %v, want the same index and a shorter rest", text, index, again, rest, err)
		}
	})
}
