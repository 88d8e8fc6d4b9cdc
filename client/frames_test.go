package client

import (
	"errors"
	"strings"
	"testing"
)

func TestFramesAreBounded(t *testing.T) {
	t.Parallel()
	var tooLarge *TooLargeError
	if _, err := newFrames(strings.NewReader("data: "+strings.Repeat("x", 100)+"\n\n"), 100).next(); !errors.As(err, &tooLarge) || tooLarge.Limit != 100 {
		t.Errorf("frame beyond the limit: %v, want a TooLargeError with the limit", err)
	}
}
