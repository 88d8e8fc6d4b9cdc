package files

import (
	"context"
	"io"
)

// Storage stores blobs: bytes that are written once. A Storage is safe for concurrent use.
type Storage interface {
	// Write stores the bytes of r under a new name. After an error the caller calls Remove.
	Write(ctx context.Context, name string, r io.Reader) error
	// Open returns the bytes of a blob from an offset on. The caller closes the result.
	Open(ctx context.Context, name string, offset int64) (io.ReadCloser, error)
	// Remove removes a blob, also one that was written in part. It succeeds if there is none.
	Remove(ctx context.Context, name string) error
}
