//go:build !linux

package memory

import (
	"context"
	"log/slog"
)

// ReleaseText does nothing: see text_linux.go.
func ReleaseText(context.Context, *slog.Logger) {}
