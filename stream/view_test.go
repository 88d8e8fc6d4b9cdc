package stream_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// readAll reads a run to its end.
func readAll(t *testing.T, ctx context.Context, f *stream.Follower, o view.Options) []view.Frame {
	t.Helper()
	v := viewer(f).Run(run, o)
	defer v.Close()
	frames, err := readOn(ctx, v)
	if !errors.Is(err, io.EOF) {
		t.Errorf("err = %v, want %v", err, io.EOF)
	}
	return frames
}

func readOn(ctx context.Context, v *view.View) ([]view.Frame, error) {
	var frames []view.Frame
	for {
		more, err := v.Next(ctx, time.Minute)
		if err != nil {
			return frames, err
		}
		if more == nil {
			return frames, errors.New("idle")
		}
		frames = append(frames, more...)
	}
}
