package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// File is a file of the server.
type File struct {
	ID string `json:"id"`
	// URL refers to the file in the source of a content part. It is relative to the server.
	URL       string    `json:"url"`
	Name      string    `json:"name"`
	Type      string    `json:"type"` // media type, by the content
	Size      int64     `json:"size"` // in bytes
	CreatedAt time.Time `json:"createdAt"`
	// ExpiresAt is when the file is deleted unless a thread refers to it by then; zero = a thread does.
	ExpiresAt time.Time `json:"expiresAt"`
}

// Upload is a file to upload.
type Upload struct {
	// Name is the name of the file, and Type its media type; "" = unknown.
	Name, Type string
	// Body is not buffered. An [io.ReaderAt], such as a file, is read from its beginning to Size, and an
	// upload of more than 8 MiB continues after a failure. Other bodies are read once.
	Body io.Reader
	// Size is the number of bytes of Body; 0 = unknown.
	Size int64
}

// UploadFile uploads a file. If Body is an [io.ReaderAt] of more than 8 MiB, it continues after a lost
// connection, and after a restart of the server. Else it makes one attempt: Body cannot be read again.
// Errors: *Problem.
func (c *Client) UploadFile(ctx context.Context, u Upload) (Document[File], error) {
	if body, ok := u.Body.(io.ReaderAt); ok && u.Size > minResumable {
		return c.resume(ctx, u, body)
	}
	query := url.Values{}
	if u.Name != "" {
		query.Set("name", u.Name)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v1/files?"+query.Encode(), u.Body)
	if err != nil {
		return Document[File]{}, fmt.Errorf("client: %w", err)
	}
	if u.Size > 0 {
		req.ContentLength = u.Size
	}
	c.prepare(req, map[string]string{"Accept": jsonType, "Content-Type": u.Type})
	resp, err := c.config.HTTP.Do(req)
	if err != nil {
		return Document[File]{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // the body is read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes))
	if err != nil {
		return Document[File]{}, fmt.Errorf("client: %w", err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return Document[File]{}, problemOf(resp, body)
	}
	d := Document[File]{JSON: body}
	return d, decode(body, &d.Value)
}

// OpenFile returns the bytes of a file. The caller closes them. Errors: *Problem.
func (c *Client) OpenFile(ctx context.Context, id string) (io.ReadCloser, error) {
	conn, err := c.open(ctx, request{method: http.MethodGet, path: filePath(id)})
	if err != nil {
		return nil, err
	}
	return fileBody{conn}, nil
}

// fileBody closes the connection of a file.
type fileBody struct{ *connection }

// Close implements io.Closer.
func (b fileBody) Close() error {
	b.close()
	return nil
}

// Files lists the files that the caller has uploaded, the newest first.
func (c *Client) Files(ctx context.Context, p Paging) (Document[Page[File]], error) {
	return document[Page[File]](ctx, c, get("/v1/files", p.query()))
}

// File returns the description of a file.
func (c *Client) File(ctx context.Context, id string) (Document[File], error) {
	return document[File](ctx, c, get(filePath(id)+"/metadata", nil))
}

// DeleteFile deletes a file.
func (c *Client) DeleteFile(ctx context.Context, id string) error {
	_, err := c.send(ctx, request{method: http.MethodDelete, path: filePath(id)})
	return err
}

func filePath(id string) string { return "/v1/files/" + url.PathEscape(id) }
