package fileroutes

import (
	"context"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	tus "github.com/tus/tusd/v2/pkg/handler"

	"github.com/perdure/perdure/api/attachments"
	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/api/deletion"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/stream"
)

// Routes serves files. All fields are required. It has no state of its own, and is safe for concurrent
// use.
type Routes struct {
	problem.Writer
	*attachments.Attachments

	Deletion *deletion.Threads // for legal holds
	// Enter takes a place among the streams of the node, which the caller leaves.
	Enter func(context.Context) (ctx context.Context, leave func(), err error)
}

// Register adds the routes to the group /v1, which authenticates.
func (r *Routes) Register(v1 *gin.RouterGroup) {
	v1.POST("/files", r.Handle(r.upload))
	v1.GET("/files", r.Handle(r.list))
	v1.GET("/files/:file", r.Handle(r.download))
	v1.HEAD("/files/:file", r.Handle(r.download))
	v1.GET("/files/:file/metadata", r.Handle(r.describe))
	v1.DELETE("/files/:file", r.Handle(r.remove))
	v1.OPTIONS("/uploads", r.Handle(r.uploadHandler(nil)))
	v1.OPTIONS("/uploads/:upload", r.Handle(r.uploadHandler(nil)))
	v1.POST("/uploads", r.Handle(r.uploadHandler((*tus.UnroutedHandler).PostFile)))
	v1.HEAD("/uploads/:upload", r.Handle(r.uploadHandler((*tus.UnroutedHandler).HeadFile)))
	v1.PATCH("/uploads/:upload", r.Handle(r.uploadHandler((*tus.UnroutedHandler).PatchFile)))
	v1.DELETE("/uploads/:upload", r.Handle(r.uploadHandler((*tus.UnroutedHandler).DelFile)))
}

// file is a file as clients get it.
type file struct {
	ID        string `json:"id"`
	URL       string `json:"url"`
	Name      string `json:"name,omitempty"`
	Type      string `json:"type"`
	Size      int64  `json:"size"`
	CreatedAt string `json:"createdAt"`
	// ExpiresAt is missing if a thread refers to the file.
	ExpiresAt string `json:"expiresAt,omitempty"`
}

// fileOf returns a file as clients get it.
func fileOf(f *files.File) file {
	s := file{ID: f.ID, URL: f.URL(), Name: f.Name, Type: f.Type, Size: f.Size, CreatedAt: f.CreatedAt.Format(time.RFC3339)}
	if at := f.ExpiresAt(); !at.IsZero() {
		s.ExpiresAt = at.Format(time.RFC3339)
	}
	return s
}

// list serves GET /v1/files: the files that the caller has uploaded, the newest first.
func (r *Routes) list(c *gin.Context) error {
	caller, err := request.Principal(c.Request.Context())
	if err != nil {
		return err
	}
	limit, err := request.Limit(c)
	if err != nil {
		return err
	}
	after := c.Query("cursor")
	if after != "" && !files.IsPosition(after) {
		return problem.InvalidParameter("cursor", "cursor must be nextCursor of a page")
	}
	all, next := r.Index.List(caller.Tenant, caller.Subject, after), ""
	if len(all) > limit {
		all, next = all[:limit], all[limit-1].Position()
	}
	page := struct {
		Items      []file `json:"items"`
		NextCursor string `json:"nextCursor,omitempty"`
	}{Items: []file{}, NextCursor: next}
	for _, indexed := range all {
		f, err := r.Store.Find(c.Request.Context(), caller.Tenant, indexed.ID) // the index has no names
		if err == nil {
			page.Items = append(page.Items, fileOf(f))
		} else if err := attachments.Problem(indexed.ID, err); problem.Of(err).Status != http.StatusNotFound {
			return err
		}
	}
	return request.WriteJSON(c, http.StatusOK, page)
}

// readable returns the file in the path, if the caller may read it.
func (r *Routes) readable(c *gin.Context) (*files.File, error) {
	caller, err := request.Principal(c.Request.Context())
	if err != nil {
		return nil, err
	}
	return r.Readable(c.Request.Context(), caller.Tenant, request.Segment(c, "file"))
}

// describe serves GET /v1/files/{file}/metadata. Errors: 404 unknown_file, 403 forbidden.
func (r *Routes) describe(c *gin.Context) error {
	f, err := r.readable(c)
	if err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusOK, fileOf(f))
}

// maxRanges bounds the ranges of a download, because each reads a whole chunk of the storage. A request
// with more gets the whole file, as RFC 9110, section 14.2, permits.
const maxRanges = 16

// download serves GET and HEAD /v1/files/{file}, with ranges. The download of a page in the same tab
// would leave the console, so other types than those of files.IsInline are attachments. Errors: 404
// unknown_file, 403 forbidden, 412 precondition_failed, 416 range_not_satisfiable.
func (r *Routes) download(c *gin.Context) error {
	f, err := r.readable(c)
	if err != nil {
		return err
	}
	content, err := r.Store.Open(c.Request.Context(), f)
	if err != nil {
		return attachments.Problem(f.ID, err)
	}
	reader := &contentReader{content: content}
	defer func() { _ = reader.close() }()
	disposition := "attachment"
	if files.IsInline(f.Type) {
		disposition = "inline"
	}
	h := c.Writer.Header()
	before := h.Clone()
	h.Set("Content-Type", contentType(f.Type))
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, filename(f.Name)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "same-site")
	h.Set("Cache-Control", "private, no-cache") // the caller may lose the access
	h.Set("ETag", `"`+f.ID+`"`)
	if !hasRanges(c.Request) {
		c.Request.Header.Del("Range")
	}
	w := &refusalWriter{ResponseWriter: c.Writer}
	http.ServeContent(w, c.Request, "", f.CreatedAt, reader)
	failure := reader.close()
	if failure == nil && w.refusal == nil || c.Writer.Written() {
		return nil // with an error, the connection is closed before the last byte
	}
	contentRange := h.Get("Content-Range")
	clear(h)
	maps.Copy(h, before)
	if w.refusal == nil {
		return failure
	}
	if w.refusal.Status == http.StatusRequestedRangeNotSatisfiable {
		h.Set("Content-Range", contentRange) // has the size of the file
	}
	return w.refusal
}

// refusalWriter is a response writer that keeps a refusal of http.ServeContent from the client: its body is a text, or
// empty.
type refusalWriter struct {
	http.ResponseWriter

	refusal *problem.Problem // nil = the content is served
}

// WriteHeader implements http.ResponseWriter.
func (w *refusalWriter) WriteHeader(status int) {
	switch status {
	case http.StatusPreconditionFailed:
		w.refusal = problem.New(status, "precondition_failed", "If-Match has not the ETag of the file, or the file is newer than If-Unmodified-Since")
	case http.StatusRequestedRangeNotSatisfiable:
		w.refusal = problem.New(status, "range_not_satisfiable", "Range has no bytes of the file: Content-Range has its size")
	default:
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (w *refusalWriter) Write(p []byte) (int, error) {
	if w.refusal != nil {
		return len(p), nil //nolint:nilerr // the refusal is no error of the connection
	}
	return w.ResponseWriter.Write(p) //nolint:wrapcheck // a writer returns errors as they are
}

// hasRanges reports whether a request is for ranges of bytes that http.ServeContent serves as RFC 9110, section 14,
// says. Other units and methods than GET have no ranges, and a suffix without a byte cannot be served.
func hasRanges(req *http.Request) bool {
	list, ok := strings.CutPrefix(req.Header.Get("Range"), "bytes=")
	if !ok || req.Method != http.MethodGet || strings.Count(list, ",") >= maxRanges {
		return false
	}
	for one := range strings.SplitSeq(list, ",") {
		if length, isSuffix := strings.CutPrefix(strings.TrimSpace(one), "-"); isSuffix && strings.Trim(length, "0") == "" {
			return false
		}
	}
	return true
}

// contentReader reads content for http.ServeContent, and keeps its first error, which ServeContent does not
// return. It is safe for concurrent use: for several ranges, ServeContent reads in a goroutine, for which it does
// not wait when the client is gone.
type contentReader struct {
	mu       sync.Mutex
	content  *files.Content
	err      error
	isClosed bool
}

// Read implements io.Reader.
func (r *contentReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isClosed {
		return 0, os.ErrClosed
	}
	n, err := r.content.Read(p)
	if r.err == nil && err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err //nolint:wrapcheck // a reader returns io.EOF as it is
}

// Seek implements io.Seeker.
func (r *contentReader) Seek(offset int64, whence int) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isClosed {
		return 0, os.ErrClosed
	}
	return r.content.Seek(offset, whence) //nolint:wrapcheck // a seeker returns errors as they are
}

// close closes the content after a read that is active, and returns the first error of a read. It may be
// called again.
func (r *contentReader) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isClosed {
		r.isClosed = true
		_ = r.content.Close() // it was read
	}
	return r.err
}

// filename returns the parameters of a Content-Disposition.
func filename(name string) map[string]string {
	if name == "" {
		return nil
	}
	return map[string]string{"filename": name}
}

// contentType returns a media type with the character set of texts.
func contentType(mediaType string) string {
	if strings.HasPrefix(mediaType, "text/") {
		return mediaType + "; charset=utf-8"
	}
	return mediaType
}

// remove serves DELETE /v1/files/{file}. Threads that refer to the file keep its URL, which is then
// unknown. Errors: 404 unknown_file, 403 forbidden, 409 legal_hold.
func (r *Routes) remove(c *gin.Context) error {
	ctx := c.Request.Context()
	caller, err := request.Principal(ctx)
	if err != nil {
		return err
	}
	id := request.Segment(c, "file")
	auditing.Detail(ctx, "file", id)
	f, err := r.Store.Find(ctx, caller.Tenant, id)
	if err != nil {
		return attachments.Problem(id, err)
	}
	if err := r.Access.CheckFile(ctx, f.Owner, policy.DeleteFile); err != nil {
		return err
	}
	if err := r.Store.Delete(ctx, caller.Tenant, id, func(thread string) error {
		return r.Deletion.CheckHold(ctx, stream.Thread{Tenant: caller.Tenant, ID: thread})
	}); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}
