package protobuf_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/protobuf"
)

func TestFrames(t *testing.T) {
	t.Parallel()
	events := []agui.Event{&agui.StepStarted{StepName: "a"}, &agui.StepFinished{StepName: "a"}}
	var wire []byte
	for _, e := range events {
		var err error
		if wire, err = protobuf.AppendFrame(wire, e); err != nil {
			t.Fatal(err)
		}
	}
	if want := "\x00\x00\x00\x09z\x07\n\x02\b\x0e\x12\x01a"; !strings.HasPrefix(string(wire), want) {
		t.Errorf("%q, want it to begin with %q", wire, want)
	}
	r := protobuf.NewReader(iotest.OneByteReader(bytes.NewReader(wire)))
	for _, want := range events {
		got, err := r.Next()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	if e, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("Next after the end = %v, %v, want EOF", e, err)
	}
}

func TestIncompleteFrames(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{"\x00", "\x00\x00\x00\x09z\x07"} {
		if e, err := protobuf.NewReader(strings.NewReader(wire)).Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("Next of %q = %v, %v, want an unexpected EOF", wire, e, err)
		}
	}
}

// TestFramesAreBounded: the limit is the limit of clients, which includes the length itself.
func TestFramesAreBounded(t *testing.T) {
	t.Parallel()
	overhead, err := protobuf.AppendFrame(nil, &agui.TextMessageContent{MessageID: "m", Delta: strings.Repeat("x", protobuf.MaxFrame/2)})
	if err != nil {
		t.Fatal(err)
	}
	fits := strings.Repeat("x", protobuf.MaxFrame-(len(overhead)-protobuf.MaxFrame/2))
	wire, err := protobuf.AppendFrame(nil, &agui.TextMessageContent{MessageID: "m", Delta: fits})
	if err != nil || len(wire) != protobuf.MaxFrame {
		t.Fatalf("largest frame = %d bytes, %v, want %d", len(wire), err, protobuf.MaxFrame)
	}
	if _, err := protobuf.NewReader(bytes.NewReader(wire)).Next(); err != nil {
		t.Errorf("the largest frame: %v", err)
	}
	before := []byte("before")
	after, err := protobuf.AppendFrame(before, &agui.TextMessageContent{MessageID: "m", Delta: fits + "x"})
	if !errors.Is(err, protobuf.ErrFrameTooLarge) || string(after) != "before" {
		t.Errorf("frame that is too large: got %v and %.20q, want ErrFrameTooLarge and no output", err, after)
	}
	if _, err := protobuf.NewReader(strings.NewReader("\x00\xa0\x00\x00")).Next(); !errors.Is(err, protobuf.ErrFrameTooLarge) {
		t.Errorf("length that is too large: got %v, want %v", err, protobuf.ErrFrameTooLarge)
	}
}
