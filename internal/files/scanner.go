package files

import (
	"context"
	"io"
)

// Scanner looks for threats in files. It is safe for concurrent use.
type Scanner interface {
	// Scan reads a file, and returns the name of the threat in it; "" = there is none.
	Scan(ctx context.Context, r io.Reader) (threat string, err error)
}

// scan is the scan of one upload, concurrent with it. The zero value scans nothing.
type scan struct {
	to      *io.PipeWriter
	verdict chan error // has the end of the scan: nil or a *ThreatError
}

// beginScan begins the scan of a file, whose bytes the caller writes to the result. The caller calls
// end.
func beginScan(ctx context.Context, scanner Scanner) *scan {
	if scanner == nil {
		return &scan{}
	}
	from, to := io.Pipe()
	running := &scan{to, make(chan error, 1)}
	go func() {
		threat, err := scanner.Scan(ctx, from)
		if err == nil && threat != "" {
			err = &ThreatError{threat}
		}
		// A scanner may stop early; the upload continues.
		_, _ = io.Copy(io.Discard, from)
		running.verdict <- err
	}()
	return running
}

// Write implements io.Writer.
func (s *scan) Write(p []byte) (int, error) {
	if s.to == nil {
		return len(p), nil
	}
	return s.to.Write(p) //nolint:wrapcheck // a writer
}

// end ends the scan of a file that was read completely, or whose upload failed with an error. It
// returns the verdict.
func (s *scan) end(err error) error {
	if s.to == nil {
		return nil
	}
	_ = s.to.CloseWithError(err) // nil = the end of the file
	return <-s.verdict
}
