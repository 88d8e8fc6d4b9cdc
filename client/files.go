package client

import (
	"context"
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
	// Body is not buffered, and not closed. An [io.ReaderAt] with a Size, such as a file, is read from its
	// beginning to Size, wherever its position is. Other bodies are read once, from their position.
	Body io.Reader
	// Size is the number of bytes of Body; 0 = unknown.
	Size int64
}

// UploadFile uploads a file. If Body is an [io.ReaderAt] with a Size of more than 8 MiB, the upload continues
// after a lost connection, and after a restart of the server. Else it makes one attempt. A connection is lost
// if the server takes no byte, and sends no answer, for 2 minutes. Errors: *Problem.
func (c *Client) UploadFile(ctx context.Context, u Upload) (d Document[File], err error) {
	file := u.Body
	if at, ok := u.Body.(io.ReaderAt); ok && u.Size > minResumable {
		return c.resume(ctx, u, at)
	} else if ok && u.Size > 0 {
		file = io.NewSectionReader(at, 0, u.Size)
	}
	r := request{
		method: http.MethodPost, path: filesPath, query: Paging{}.query("name", u.Name),
		header: map[string]string{"Accept": jsonType, "Content-Type": u.Type}, file: file, size: u.Size,
	}
	if d.JSON, err = c.try(ctx, r); err != nil {
		return d, err
	}
	return d, decode(d.JSON, &d.Value)
}

// OpenFile returns the bytes of a file. The caller closes them. A read fails if the server sends nothing for
// Config.IdleTimeout. The server disconnects a caller that does not read for 30 s, unless the rest fits into
// the buffers of the connection. Errors: *Problem.
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
	return document[Page[File]](ctx, c, get(filesPath, p.query()))
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

func filePath(id string) string { return filesPath + "/" + url.PathEscape(id) }
