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
		t.Errorf("error at the end = %v, want %v", err, io.EOF)
	}
	return frames
}

// readOn reads a view to its end, and returns the error of the end.
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
