package client

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// minResumable is the size above which UploadFile continues an upload after a failure, in bytes. Smaller
// files take fewer requests, and the server keeps less than a file of this size if it is killed.
const minResumable = 8 << 20

// Paths of uploads and of files.
const (
	uploadsPath = "/v1/uploads"
	filesPath   = "/v1/files"
)

// errNoProgress is the error of a request that was accepted, and added no byte.
var errNoProgress = errors.New("client: the server has taken no byte of the upload")

// resumableUpload is an upload by the tus protocol (https://tus.io/protocols/resumable-upload).
type resumableUpload struct {
	client *Client
	body   io.ReaderAt
	size   int64
	path   string // of the upload
	offset int64  // that the server has reported
	file   string // ID; "" = the upload is not complete
}

// resume uploads a file. It continues after failures for which the client retries.
func (c *Client) resume(ctx context.Context, u Upload, body io.ReaderAt) (Document[File], error) {
	r := resumableUpload{client: c, body: body, size: u.Size}
	pace := c.pace()
	for r.file == "" {
		before := r.offset
		err := r.advance(ctx, u)
		if r.offset > before {
			pace.reset()
		}
		switch {
		case err == nil && r.file == "" && r.offset <= before:
			err = errNoProgress
		case err == nil:
			continue
		}
		if err := pace.waitBeforeRetry(ctx, err); err != nil {
			return Document[File]{}, err
		}
	}
	return c.File(ctx, r.file)
}

// advance begins the upload, if it has no path, or asks for its offset, and sends what is missing.
func (r *resumableUpload) advance(ctx context.Context, u Upload) error {
	if r.path == "" {
		header, err := r.exchange(ctx, request{method: http.MethodPost, path: uploadsPath, header: map[string]string{"Upload-Length": strconv.FormatInt(r.size, 10), "Upload-Metadata": metadataOf(u)}})
		if err != nil {
			return err
		}
		id := header.Get("Location")
		r.path = uploadsPath + "/" + url.PathEscape(id[strings.LastIndexByte(id, '/')+1:])
	} else if header, err := r.exchange(ctx, request{method: http.MethodHead, path: r.path}); err != nil {
		return err
	} else if err := r.take(header); err != nil || r.file != "" {
		return err
	}
	return r.send(ctx)
}

// metadataOf returns the name and the type of a file as the header Upload-Metadata; "" = it has none.
func metadataOf(u Upload) string {
	var pairs []string
	for _, pair := range [][2]string{{"filename", u.Name}, {"filetype", u.Type}} {
		if pair[1] != "" {
			pairs = append(pairs, pair[0]+" "+base64.StdEncoding.EncodeToString([]byte(pair[1])))
		}
	}
	return strings.Join(pairs, ",")
}

// exchange sends a request once, and returns the headers of the response.
func (r *resumableUpload) exchange(ctx context.Context, req request) (http.Header, error) {
	if req.header == nil {
		req.header = map[string]string{}
	}
	req.header["Tus-Resumable"] = "1.0.0"
	conn, err := r.client.open(ctx, req)
	if err != nil {
		return nil, err
	}
	defer conn.close()
	return conn.resp.Header, nil
}

// send sends the bytes from the offset on. Each request has a reader of its own, because the transport may
// read the body of a request after it has failed.
func (r *resumableUpload) send(ctx context.Context) error {
	rest := io.NewSectionReader(r.body, r.offset, r.size-r.offset)
	header, err := r.exchange(ctx, request{
		method: http.MethodPatch, path: r.path, file: rest, size: rest.Size(),
		header: map[string]string{"Upload-Offset": strconv.FormatInt(r.offset, 10), "Content-Type": "application/offset+octet-stream"},
	})
	var refused *Problem
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusConflict: // an earlier request has arrived meanwhile: ask for the offset
		return fmt.Errorf("client: %s", refused.Error())
	case err != nil:
		return err
	}
	return r.take(header)
}

// take takes the offset and the file from the headers of a response.
func (r *resumableUpload) take(header http.Header) (err error) {
	if r.offset, err = strconv.ParseInt(header.Get("Upload-Offset"), 10, 64); err != nil || r.offset < 0 || r.offset > r.size {
		return &Problem{Status: http.StatusBadGateway, Title: "the response has no valid Upload-Offset"}
	}
	r.file = strings.TrimPrefix(header.Get("Upload-File"), filesPath+"/")
	return nil
}
