package presence_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/perdure/perdure/internal/presence"
	"github.com/perdure/perdure/stream/streamtest"
)

// What a worker has not ended when it stops is failed by itself: nobody has to find it dead first.
func TestStoppingWorkerFailsWhatItLeaves(t *testing.T) {
	t.Parallel()
	var left []string
	p, err := presence.Start(t.Context(), streamtest.Open(t), "one", func(_ context.Context, worker string, token []byte) error {
		left = append(left, worker+" "+string(token))
		return nil
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	end, err := p.Begin(t.Context(), []byte("ended"))
	if err != nil {
		t.Fatal(err)
	}
	end()
	if _, err := p.Begin(t.Context(), []byte("cut")); err != nil {
		t.Fatal(err)
	}
	late, err := p.Begin(t.Context(), []byte("ended on the way out"))
	if err != nil {
		t.Fatal(err)
	}
	p.Leave()
	late() // whether Temporal hears of it is unknown
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(left)
	if !slices.Equal(left, []string{"one cut", "one ended on the way out"}) {
		t.Errorf("it failed %q, want what it left and what it may not have reported", left)
	}
}
