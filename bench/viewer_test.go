package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
)

// response returns a server's response with the frames, in chunks of a few frames each.
func response(frames []string) string {
	var b strings.Builder
	b.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
	for few := range slices.Chunk(frames, 3) {
		chunk := strings.Join(few, "")
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(chunk), chunk)
	}
	return b.String()
}

// numbered gives frames IDs that sort like their numbers.
func numbered(t *testing.T, end ...agui.Event) []string {
	frames := stream(t, tokensPerRun, end...)
	for i, f := range frames {
		_, data, _ := strings.Cut(f, "\n")
		frames[i] = fmt.Sprintf("id: %05d\n%s", i, data)
	}
	return frames
}

// newTestViewer returns a viewer without a connection.
func newTestViewer() *viewer {
	return &viewer{scan: scan{dialect: dialectAGUI, wanted: tokensPerRun, sample: &sample{}}}
}

// taken returns a viewer that receives a text in pieces of any size.
func (v *viewer) taken(text string, r *rand.Rand) error {
	for len(text) > 0 {
		n := min(13+r.IntN(300), len(text))
		if err := v.take([]byte(text[:n]), 1, nil); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// TestEqualViewersAreCounted: a stream is the same in one piece, in any pieces, and
// disconnected and continued.
func TestEqualViewersAreCounted(t *testing.T) {
	t.Parallel()
	frames := numbered(t, &agui.TextMessageEnd{MessageID: "m"}, finished)
	whole := newTestViewer()
	if err := whole.take([]byte(response(frames)), 1, nil); err != nil {
		t.Fatal(err)
	}
	if whole.closed(); whole.cut || whole.events != len(frames) {
		t.Errorf("complete viewer: cut = %v after %d of %d events, want all", whole.cut, whole.events, len(frames))
	}
	for i := range 50 {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		v := newTestViewer()
		text := response(append(slices.Clone(frames), ": heartbeat\n\n"))
		text = text[:100+r.IntN(len(text)-300)]
		if err := v.taken(text, r); err != nil {
			t.Fatal(err)
		}
		if v.closed(); !v.cut {
			t.Error("viewer without the end: cut = false, want true")
		}
		if err := v.taken(response(frames[v.events:]), r); err != nil {
			t.Fatal(err)
		}
		if err := whole.same(v); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDifferentViewersAreErrors(t *testing.T) {
	t.Parallel()
	frames := numbered(t, finished)
	lost := slices.Delete(slices.Clone(frames), 1, 2)
	twice := slices.Insert(slices.Clone(frames), 2, frames[1])
	for name, text := range map[string]string{
		"an event is lost": response(lost), "one comes twice": response(twice), "the end is missing": response(frames[:len(frames)-1]),
		"a refused request": "HTTP/1.1 404 Not Found\r\n\r\n",
	} {
		whole, v := newTestViewer(), newTestViewer()
		err := whole.take([]byte(response(frames)), 1, nil)
		if err == nil {
			err = v.take([]byte(text), 1, nil)
		}
		if err == nil {
			err = whole.same(v)
		}
		if !errors.Is(err, errRun) {
			t.Errorf("%s: got %v, want %v", name, err, errRun)
		}
	}
}
