package connect

import (
	"context"
	"io"

	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/internal/files/bucket"
	"github.com/perdure/perdure/internal/files/clamd"
	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/stream"
)

// OpenFiles opens the files of tenants as the configuration says. The caller closes what it returns.
// Errors: *config.VariableError.
func OpenFiles(ctx context.Context, cfg *config.Config, l *stream.Log) (*files.Store, io.Closer, error) {
	options := files.Options{MaxSize: cfg.FilesMaxSize}
	closer := io.Closer(io.NopCloser(nil))
	if cfg.Files != "" {
		opened, err := bucket.Open(ctx, cfg.Files)
		if err != nil {
			return nil, nil, &config.VariableError{Name: "PERDURE_FILES", Err: err}
		}
		options.Storage, closer = opened, opened
	}
	if cfg.FilesScanner != "" {
		options.Scanner = &clamd.Scanner{Address: cfg.FilesScanner}
	}
	store, err := files.Open(ctx, l, options)
	return store, closer, err
}

// OpenStores opens the log, as OpenLog does, and the files of tenants. Close closes what they need.
func (c *Connections) OpenStores(ctx context.Context, cfg *config.Config) (*stream.Log, *files.Store, error) {
	log, err := OpenLog(ctx, cfg, c.NATS)
	if err != nil {
		return nil, nil, err
	}
	store, bucket, err := OpenFiles(ctx, cfg, log)
	c.bucket = bucket
	return log, store, err
}
