package stream_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// randomPosition returns a random position.
func randomPosition(r *rand.Rand) stream.Position {
	// Few bits are as likely as many, so that positions share a record and widths differ.
	return stream.Position{Seq: r.Uint64N(1 << (1 + r.IntN(48))), Index: int(r.Int64N(1 << (1 + r.IntN(20))))}
}

// comparePositions compares positions in the order of the log.
func comparePositions(p, q stream.Position) int {
	return cmp.Or(cmp.Compare(p.Seq, q.Seq), cmp.Compare(p.Index, q.Index))
}

// TestCursorTextHasOrderOfLog: a cursor's text is parsed to the same cursor, and texts
// sort like positions.
func TestCursorTextHasOrderOfLog(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	random := func() stream.Cursor {
		c := stream.Cursor{Position: randomPosition(r), Generation: stream.Generation1, Epoch: l.Epoch()}
		if r.IntN(2) == 0 {
			c.Generation = stream.Generation0
		}
		died := c.Seq
		for range r.IntN(4) {
			if earlier := randomPosition(r); comparePositions(earlier, c.Position) < 0 && died < 1<<48 { // as wide as cursors are
				c.ShownParts = append(c.ShownParts, stream.ShownPart{Shown: earlier, SupersededAt: died})
				died += 1 + r.Uint64N(1<<40)
			}
		}
		return c
	}
	for range 20_000 {
		a, b := random(), random()
		if want := comparePositions(a.Position, b.Position); want != 0 && strings.Compare(a.String(), b.String()) != want {
			t.Fatalf("seed %d: %s and %s: order of the texts differs, want that of the positions %v and %v", seed, a, b, a.Position, b.Position)
		}
		back, err := l.ParseCursor(a.String())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		mustEqual(t, fmt.Sprintf("seed %d: text of the parsed cursor", seed), back.String(), a.String())
		mustEqual(t, fmt.Sprintf("seed %d: position", seed), back.Position, a.Position)
		mustEqual(t, fmt.Sprintf("seed %d: generation", seed), back.Generation, a.Generation)
		mustEqual(t, fmt.Sprintf("seed %d: shown parts", seed), back.ShownParts, a.ShownParts)
	}
}

func TestCursorOfAnotherLog(t *testing.T) {
	t.Parallel()
	l, other := streamtest.Open(t), streamtest.Open(t)
	c := stream.Cursor{Position: stream.Position{Seq: 7, Index: 1}, Generation: stream.Generation1, Epoch: l.Epoch()}
	if _, err := other.ParseCursor(c.String()); !errors.Is(err, stream.ErrLogReplaced) {
		t.Errorf("in another log: got %v, want ErrLogReplaced", err)
	}
	if _, err := l.ParseCursor(c.String()); err != nil {
		t.Errorf("in its own log: got %v", err)
	}
}

func FuzzParseCursor(f *testing.F) {
	l := streamtest.Open(f)
	good := stream.Cursor{Position: stream.Position{Seq: 7, Index: 2}, Generation: stream.Generation0, Epoch: l.Epoch()}
	f.Add(good.String())
	good.ShownParts = []stream.ShownPart{{Shown: stream.Position{Seq: 3, Index: 1}, SupersededAt: 7}, {SupersededAt: 9}}
	f.Add(good.String())
	for _, s := range []string{
		"", "-", "0", "42", "--", "00000000000700002", "00000000000700002-", "00000000000700002-1", "00000000000700002-2" + l.Epoch(),
		"+0000000000700002-1" + l.Epoch(), good.String() + "-", good.String() + "-x", good.String() + "-00000000000700002", good.String() + "-0-0",
		" " + good.String(), strings.ToUpper(good.String()), strings.Repeat("0", 10_000), "\x00", "ü",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := l.ParseCursor(text)
		if err != nil {
			if !errors.Is(err, stream.ErrInvalidCursor) && !errors.Is(err, stream.ErrLogReplaced) {
				t.Errorf("ParseCursor(%q) = %v, want ErrInvalidCursor or ErrLogReplaced", text, err)
			}
			if len(err.Error()) > 300 {
				t.Errorf("length of the error = %v, want at most %v", len(err.Error()), 300)
			}
			return
		}
		if again, err := l.ParseCursor(c.String()); err != nil || again.Position != c.Position || again.Generation != c.Generation {
			t.Errorf("%q is read as %+v, which is read as %+v, %v, want equal cursors", text, c, again, err)
		}
	})
}
