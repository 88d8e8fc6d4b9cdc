package eventsource

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestFramesAreBounded(t *testing.T) {
	t.Parallel()
	const limit = 100 << 10
	for name, text := range map[string]string{
		"a line":     "data: " + strings.Repeat("x", limit) + "\n\n",
		"many lines": strings.Repeat("data: xxxxxxxxxx\n", limit/15) + "\n",
		"no end":     strings.Repeat("x", limit*2),
		"a comment":  ":" + strings.Repeat("x", limit) + "\n\n",
	} {
		var tooLarge *TooLargeError
		if f, err := NewReader(strings.NewReader(text), limit).Next(); !errors.As(err, &tooLarge) || tooLarge.Limit != limit {
			t.Errorf("%s: got %d bytes, %v, want the limit exceeded", name, len(f.Data), err)
		}
	}
	s := NewReader(strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", limit/2)+"\n\n", 10)), limit)
	for range 10 {
		if f, err := s.Next(); err != nil || len(f.Data) != limit/2 {
			t.Fatalf("frame within the limit: got %d bytes, %v, want %d", len(f.Data), err, limit/2)
		}
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	got := readFrames(t, strings.NewReader(": c\n\nid: 1\ndata: x\n\nid: 2\n\ndata:y\ndata: z\r\nevent: e\r\n\r\nid: 3\ndata: cut\n"))
	if want := "1:x|:y\nz"; strings.Join(got, "|") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// FuzzFrames checks that frames are the same for any chunks of bytes, and that only complete frames
// are returned.
func FuzzFrames(f *testing.F) {
	f.Add("id: 1\ndata: x\n\n: c\n\ndata:y\ndata: z\r\n\r\nid: 3\n\ndata: cut")
	f.Add("\n\n\nevent: e\nretry: 1\ndata\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		whole := readFrames(t, strings.NewReader(text))
		if parts := readFrames(t, iotest.OneByteReader(strings.NewReader(text))); strings.Join(parts, "|") != strings.Join(whole, "|") {
			t.Errorf("byte by byte: got %q, want %q as at once", parts, whole)
		}
		if cut := readFrames(t, strings.NewReader(text+"\ndata: not whole\n")); len(cut) < len(whole) || len(cut) > len(whole)+1 {
			t.Errorf("whole stream: %q; cut stream: got %q, want at most one frame more", whole, cut)
		} else if n := len(cut); n > 0 && strings.Contains(cut[n-1], "not whole") {
			t.Errorf("frames of a cut stream = %q, want no incomplete frame", cut)
		}
	})
}

// readFrames returns the data of all frames.
func readFrames(t *testing.T, r io.Reader) (list []string) {
	t.Helper()
	s := NewReader(r, 1<<20)
	for {
		f, err := s.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, f.ID+":"+string(f.Data))
	}
}

func TestCutFrame(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"data: a\n\ndata: b\ndata: c\n": "b\nc",
		"data: a\n\ndata: b":            "b",
		"data: a\n\nid: 1\n":            "",
		"data: a\n\n":                   "",
	} {
		s := NewReader(strings.NewReader(text), 100)
		if f, err := s.Next(); err != nil || string(f.Data) != "a" {
			t.Fatalf("%q: first frame = %q, %v", text, f.Data, err)
		}
		if _, err := s.Next(); !errors.Is(err, io.EOF) || string(s.Cut()) != want {
			t.Errorf("%q: cut frame = %q, %v, want %q", text, s.Cut(), err, want)
		}
	}
}
