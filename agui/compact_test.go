package agui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompact(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ stream, want string }{
		"text":                      {"run; S m; C m; C m; C m; E m; fin", "RUN_STARTED; S m; C m; E m; RUN_FINISHED"},
		"interleaved":               {"S m; C m; TS c<m; TA c; C m; RMS r; RMC r; TA c; RMC r; C m; E m; TE c; RME r", "S m; C m; TS c; TA c; RMS r; RMC r; E m; TE c; RME r"},
		"reopened":                  {"S m; C m; C m; E m; S m; C m; C m; E m", "S m; C m; E m; S m; C m; E m"},
		"a snapshot stays":          {"S m; C m; C m; MS u; C m; C m; E m", "S m; C m; MESSAGES_SNAPSHOT; C m; E m"},
		"state and steps stay":      {"ST a; S m; C m; snap; C m; SF a; E m", "STEP_STARTED; S m; C m; STATE_SNAPSHOT; STEP_FINISHED; E m"},
		"owners keep their own":     {"S m@s; C m@s; C m; C m; E m", "S m@s; C m@s; C m; E m"},
		"no events":                 {"S m; E m; TS c; TE c", "S m; E m; TS c; TE c"},
		"chunks":                    {"tc m; tc -; cc c<f; cc -; rc r; rc -; fin", "S m; C m; E m; TS c; TA c; TE c; RMS r; RMC r; RME r; RUN_FINISHED"},
		"open items stay open":      {"S m; C m; C m; TS c; TA c; TA c", "S m; C m; TS c; TA c"},
		"runs do not run together":  {"run; S m; C m; C m; err; run; S m; C m; C m", "RUN_STARTED; S m; C m; RUN_ERROR; RUN_STARTED; S m; C m"},
		"a chunk that has no place": {"run; tc -; fin", "RUN_STARTED; TEXT_MESSAGE_CHUNK; RUN_FINISHED"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, transcript(Compact(script(t, tt.stream)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompactKeepsContentAndMetadata(t *testing.T) {
	t.Parallel()
	content := func(delta string, m Metadata) Event {
		return &TextMessageContent{BaseEvent: BaseEvent{Metadata: m}, MessageID: "m", Delta: delta}
	}
	marked := Metadata{"a": json.RawMessage("1")}
	in := []Event{&TextMessageStart{MessageID: "m"}, content("1", nil), content("2", nil), content("3", marked), content("4", nil), content("5", nil)}
	want := []Event{in[0], content("12", nil), in[3], content("45", nil)}
	before := encode(t, in[1])
	if diff := cmp.Diff(want, Compact(in)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !bytes.Equal(before, encode(t, in[1])) {
		t.Error("input of Compact has changed, want it unchanged")
	}
}

// words are the parts of FuzzCompact's streams: few IDs, so that items meet.
var words = []string{
	"run", "fin", "err", "S a", "C a", "C a", "E a", "S b@s", "C b", "C b@s", "E b", "TS c<a", "TA c", "TA c", "TE c", "TR c",
	"TS d<b@s", "TA d", "TE d", "RS a", "RE a", "RMS a", "RMC a", "RME a", "RMS r", "RMC r", "RME r", "ST x", "SF x", "SA s", "SZ s",
	"AS a", "AS p", "AD p", "EV a", "ET c", "MS a", "MS b@s", "snap", "custom", "raw", "unk", "tc a", "tc -", "tc e", "cc f<g", "cc -", "rc r", "rc -",
}

// FuzzCompact checks any order that a verifier accepts: the verifier accepts the compacted list
// too. It reduces to the same, and has one content event where no other event is between.
func FuzzCompact(f *testing.F) {
	word := make(map[string]byte, len(words))
	for i, w := range words {
		word[w] = byte(i)
	}
	seed := func(ws ...string) {
		var raw []byte
		for _, w := range ws {
			raw = append(raw, word[w])
		}
		f.Add(raw)
	}
	seed("run", "S a", "C a", "TS c<a", "TA c", "C a", "TA c", "MS a", "C a", "C a", "E a", "TE c", "TR c", "fin", "run", "S a", "C a", "C a")
	seed("run", "tc a", "C b", "tc -", "rc r", "rc r", "AS a", "cc f<g", "cc -", "err")
	seed("run", "S a", "RMS a", "C a", "RMC a", "C a", "RMC a", "E a", "RME a", "fin")
	state := uint32(1)
	for range 200 {
		raw := []byte{word["run"]}
		for range 60 {
			state = state*1664525 + 1013904223
			raw = append(raw, byte(state>>16)%byte(len(words)))
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var stream []Event
		var guard Verifier
		for i, b := range raw[:min(len(raw), 500)] {
			e := scriptEvent(t, words[int(b)%len(words)])
			e = withDelta(e, fmt.Sprint(i, ";")) // different ones, so that their order is visible
			err := guard.Check(e)
			switch e.(type) {
			case *TextMessageChunk, *ToolCallChunk, *ReasoningMessageChunk:
				if err != nil {
					t.Skip("a refused chunk leaves nothing to go on with")
				}
			}
			if err == nil {
				stream = append(stream, e)
			}
		}
		compacted := Compact(stream)
		var verifier Verifier
		want, got := NewReducer(nil, nil), NewReducer(nil, nil)
		for _, e := range stream {
			if err := want.Apply(e); err != nil {
				t.Skip(err)
			}
		}
		for i, e := range compacted {
			if err := verifier.Check(e); err != nil {
				t.Fatalf("event %d is refused: %v\n%s\n%s", i, err, transcript(stream), transcript(compacted))
			}
			if err := got.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(messagesJSON(t, want), messagesJSON(t, got)); diff != "" {
			t.Errorf("messages (-all +compacted):\n%s\n%s\n%s", diff, transcript(stream), transcript(compacted))
		}
		if !bytes.Equal(want.State(), got.State()) {
			t.Errorf("state of the compacted events = %s, want %s", got.State(), want.State())
		}
		if twice := Compact(compacted); len(twice) != len(compacted) {
			t.Errorf("number of events after a second Compact = %d, want %d", len(twice), len(compacted))
		}
	})
}
