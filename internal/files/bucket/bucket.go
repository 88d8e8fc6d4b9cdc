// Package bucket stores the bytes of files in a bucket of S3, Google Cloud Storage or Azure Blob Storage,
// or in a directory.
package bucket

import (
	"context"
	"fmt"
	"io"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/fileblob"  // file://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
	"gocloud.dev/gcerrors"

	"github.com/perdure/perdure/stream"
)

// Bucket implements files.Storage. Each blob is an object. It is safe for concurrent use.
type Bucket struct{ bucket *blob.Bucket }

// Open opens the bucket of a URL (https://gocloud.dev/howto/blob/). The caller closes it.
func Open(ctx context.Context, url string) (*Bucket, error) {
	opened, err := blob.OpenBucket(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("bucket: %w", err)
	}
	return &Bucket{opened}, nil
}

// Close closes the bucket.
func (b *Bucket) Close() error { return b.bucket.Close() }

// Write implements files.Storage. An object appears when it is complete: if r fails, there is none.
func (b *Bucket) Write(ctx context.Context, name string, r io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := b.bucket.NewWriter(ctx, name, &blob.WriterOptions{ContentType: "application/octet-stream", DisableContentTypeDetection: true})
	if err != nil {
		return unavailable(err)
	}
	if _, err := io.Copy(w, r); err != nil {
		cancel() // Close then discards the object
		_ = w.Close()
		return err
	}
	return unavailable(w.Close())
}

// Open implements files.Storage.
func (b *Bucket) Open(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	r, err := b.bucket.NewRangeReader(ctx, name, offset, -1, nil)
	if err != nil {
		return nil, unavailable(err)
	}
	return r, nil
}

// Remove implements files.Storage.
func (b *Bucket) Remove(ctx context.Context, name string) error {
	err := b.bucket.Delete(ctx, name)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil
	}
	return unavailable(err)
}

// unavailable marks an error of the bucket as stream.ErrUnavailable; nil stays nil.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("bucket: %w: %w", stream.ErrUnavailable, err)
}
