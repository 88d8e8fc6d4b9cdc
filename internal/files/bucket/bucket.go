// Package bucket stores the bytes of files in a bucket of S3, Google Cloud Storage or Azure Blob Storage,
// or in a directory.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"cloud.google.com/go/storage"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/fileblob"  // file://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
	"gocloud.dev/gcerrors"

	"github.com/perdure/perdure/stream"
)

const (
	// defaultAnswerTime is the value of Bucket.answerTime.
	defaultAnswerTime = 2 * time.Minute
	// maxAttempts bounds the attempts of one request to Google: its SDK repeats it without end. The SDKs
	// of the other clouds have about the same bound.
	maxAttempts = 4
)

// Bucket implements files.Storage. Each blob is an object. It is safe for concurrent use.
type Bucket struct {
	bucket *blob.Bucket
	parts  *parts // nil = the store is not S3
	// answerTime bounds how long a cloud may take no bytes, give none, or not answer.
	answerTime time.Duration
}

// Open opens the bucket of a URL (https://gocloud.dev/howto/blob/). The caller closes it.
func Open(ctx context.Context, bucketURL string) (*Bucket, error) {
	u, err := url.Parse(bucketURL)
	if err != nil {
		return nil, fmt.Errorf("bucket: %w", err)
	}
	opened, err := blob.DefaultURLMux().OpenBucketURL(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("bucket: %w", err)
	}
	b := &Bucket{bucket: opened, answerTime: defaultAnswerTime}
	var google *storage.Client
	if opened.As(&google) {
		google.SetRetry(storage.WithMaxAttempts(maxAttempts))
	}
	var amazon *s3.Client
	if opened.As(&amazon) {
		b.parts = &parts{client: amazon, bucket: u.Host, prefix: u.Query().Get("prefix")}
	}
	return b, nil
}

// Close closes the bucket.
func (b *Bucket) Close() error { return b.bucket.Close() }

// Write implements files.Storage. An object appears when it is complete: if r fails, there is none.
func (b *Bucket) Write(ctx context.Context, name string, r io.Reader) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w, err := b.bucket.NewWriter(ctx, name, &blob.WriterOptions{ContentType: "application/octet-stream", DisableContentTypeDetection: true})
	if err != nil {
		return unavailable(err)
	}
	from := &source{r: r, silence: time.AfterFunc(b.answerTime, func() { cancel(errSilent) }), answerTime: b.answerTime}
	defer from.silence.Stop()
	if _, err = io.Copy(w, from); err != nil {
		cancel(nil) // Close then discards the object
	}
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if from.err != nil {
		return from.err
	}
	return unavailable(withCause(ctx, err))
}

// Open implements files.Storage.
func (b *Bucket) Open(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	o := &object{ctx: ctx, silence: time.AfterFunc(b.answerTime, func() { cancel(errSilent) }), answerTime: b.answerTime, cancel: cancel}
	defer o.silence.Stop()
	var err error
	if o.Reader, err = b.bucket.NewRangeReader(ctx, name, offset, -1, nil); err != nil {
		err = withCause(ctx, err)
		cancel(nil)
		return nil, unavailable(err)
	}
	return o, nil
}

// Remove implements files.Storage.
func (b *Bucket) Remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, b.answerTime, errSilent)
	defer cancel()
	err := b.bucket.Delete(ctx, name)
	if gcerrors.Code(err) == gcerrors.NotFound {
		err = nil
	}
	if err == nil && b.parts != nil {
		err = b.parts.remove(ctx, name)
	}
	return unavailable(withCause(ctx, err))
}

// source is the source of a new object. The time that the cloud may be silent does not run while the
// source is read.
type source struct {
	r          io.Reader
	silence    *time.Timer
	answerTime time.Duration
	err        error // of r
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	s.silence.Stop()
	n, err := s.r.Read(p)
	s.silence.Reset(s.answerTime)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err //nolint:wrapcheck // a reader returns io.EOF as it is
}

// object is an open object.
type object struct {
	*blob.Reader

	ctx        context.Context
	silence    *time.Timer
	answerTime time.Duration
	cancel     context.CancelCauseFunc
}

// Read implements io.Reader.
func (o *object) Read(p []byte) (int, error) {
	o.silence.Reset(o.answerTime)
	defer o.silence.Stop()
	n, err := o.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = unavailable(withCause(o.ctx, err))
	}
	return n, err
}

// Close implements io.Closer.
func (o *object) Close() error {
	o.cancel(nil)
	return o.Reader.Close()
}

// errSilent tells that the cloud has not answered in time.
var errSilent = errors.New("the cloud does not answer")

// withCause returns errSilent if it has ended ctx, in place of the error of the client library.
func withCause(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// unavailable marks an error of the bucket as stream.ErrUnavailable; nil stays nil.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("bucket: %w: %w", stream.ErrUnavailable, err)
}
