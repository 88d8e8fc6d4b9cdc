package bucket

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// parts removes the parts of interrupted uploads. S3 keeps them, and charges for them, until the upload
// is aborted. The SDK does so only with the context of the upload, which has ended when a client leaves;
// a killed process does not at all. Google and Azure remove such parts after a week.
type parts struct {
	client         *s3.Client
	bucket, prefix string
}

// remove aborts the uploads of an object.
func (p *parts) remove(ctx context.Context, name string) error {
	key := p.prefix + name
	list, err := p.client.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: &p.bucket, Prefix: &key})
	if err != nil {
		return fmt.Errorf("uploads: %w", err)
	}
	for _, u := range list.Uploads {
		_, err := p.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &p.bucket, Key: u.Key, UploadId: u.UploadId})
		if _, isGone := errors.AsType[*types.NoSuchUpload](err); err != nil && !isGone {
			return fmt.Errorf("abort an upload: %w", err)
		}
	}
	return nil
}
