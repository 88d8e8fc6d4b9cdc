package fileroutes

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	tus "github.com/tus/tusd/v2/pkg/handler"
	"golang.org/x/exp/slog"

	"github.com/perdure/perdure/api/attachments"
	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/files"
)

// extensions are those of the tus protocol that resumable uploads have.
const extensions = "creation,creation-with-upload,expiration,termination"

// fileHeader names the file of a complete upload in a response. The protocol has no header for it:
// Location is that of the upload. Headers of the protocol begin with Upload.
const fileHeader = "Upload-File"

// RequestHeaders and ResponseHeaders are the headers of resumable uploads that pages of other origins send
// and read.
var (
	RequestHeaders  = []string{"Tus-Resumable", "Upload-Length", "Upload-Metadata", "Upload-Offset"}
	ResponseHeaders = []string{
		"Location", "Tus-Extension", "Tus-Max-Size", "Tus-Resumable", "Tus-Version",
		"Upload-Expires", fileHeader, "Upload-Length", "Upload-Metadata", "Upload-Offset",
	}
)

// maxTypeBytes bounds the media type that a client declares. A longer one is as none.
const maxTypeBytes = 255

// exchange is one request for a resumable upload, and the store that tusd's handler uses for it. tusd
// checks the headers of the protocol (https://tus.io/protocols/resumable-upload). The store has the
// caller's uploads only.
type exchange struct {
	routes  *Routes
	ctx     context.Context
	caller  auth.Principal
	body    io.Reader        // of the request
	upload  *files.Resumable // nil = not known yet
	failure error            // of the store: tusd's answer has not its meaning
}

// uploadHandler returns the handler of a method of the protocol; nil = OPTIONS. It serves /v1/uploads and
// /v1/uploads/{upload}. The bytes of a PATCH that breaks off are kept. Errors: 400 empty_file,
// 404 unknown_upload, 409 upload_changed, 409 wrong_offset, 412 unsupported_tus_version, 413 too_large,
// 422 file_infected, 422 too_many_parts, 429 quota_exceeded.
func (r *Routes) uploadHandler(serve func(*tus.UnroutedHandler, http.ResponseWriter, *http.Request)) func(*gin.Context) error {
	return func(c *gin.Context) error {
		c.Header("Tus-Resumable", "1.0.0")
		c.Header("Tus-Version", "1.0.0")
		x, err := r.newExchange(c)
		if err != nil {
			return err
		}
		if c.Request.ContentLength != 0 {
			ctx, leave, err := r.Enter(x.ctx)
			if err != nil {
				return err
			}
			defer leave()
			x.ctx = ctx
		}
		answered, err := x.serve(c, serve)
		if err == nil {
			err = x.refusal(answered)
		}
		if err != nil {
			if c.Request.ContentLength != 0 {
				c.Header("Connection", "close") // the body may not be read
			}
			x.undo(c.Request.Method)
			return err
		}
		x.writeHeader(c, answered)
		return nil
	}
}

// undoTime bounds undo. It continues if the client has left.
const undoTime = 10 * time.Second

// undo deletes the upload that a request has begun and not answered: the client does not know its URL, and
// its bytes would count in the quota of the tenant until it expires.
func (x *exchange) undo(method string) {
	if method != http.MethodPost || x.upload == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.ctx), undoTime)
	defer cancel()
	_ = x.routes.Store.DeleteUpload(ctx, x.upload.Tenant, x.upload.ID) // else it expires
}

// newExchange returns the exchange of a request whose caller may upload files.
func (r *Routes) newExchange(c *gin.Context) (*exchange, error) {
	caller, err := r.uploader(c)
	if err != nil {
		return nil, err
	}
	return &exchange{routes: r, ctx: c.Request.Context(), caller: caller}, nil
}

// silent is the logger of tusd, whose lines would have the paths and errors of all requests.
var silent = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.Level(math.MaxInt)}))

// serve has tusd answer the request. The result keeps the answer from the client: tusd's errors are
// texts, and it sets deadlines of the connection, which are those of the API.
func (x *exchange) serve(c *gin.Context, serve func(*tus.UnroutedHandler, http.ResponseWriter, *http.Request)) (*answer, error) {
	composer := tus.NewStoreComposer()
	composer.UseCore(x)
	composer.UseTerminater(x)
	handler, err := tus.NewUnroutedHandler(tus.Config{
		StoreComposer: composer, MaxSize: x.routes.Store.MaxSize(), BasePath: files.UploadsPath, Logger: silent,
		Cors:                             &tus.CorsConfig{Disable: true}, // the API has its own
		GracefulRequestCompletionTimeout: time.Nanosecond,                // of tusd's contexts, which the store does not use
	})
	if err != nil {
		return nil, err
	}
	req := c.Request.Clone(c.Request.Context())
	req.Header.Del("X-HTTP-Method-Override") // the route has the method
	req.URL.Path = request.Segment(c, "upload")
	x.body = &body{c.Request.Body, http.NewResponseController(c.Writer)}
	answered := &answer{header: http.Header{}}
	handler.Middleware(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { serve(handler, w, req) })).ServeHTTP(answered, req)
	return answered, nil
}

// writeHeader writes the answer of a request that was accepted.
func (x *exchange) writeHeader(c *gin.Context, answered *answer) {
	header := c.Writer.Header()
	for _, name := range []string{"Cache-Control", "Tus-Max-Size", "Upload-Length", "Upload-Metadata", "Upload-Offset"} {
		if value := answered.header.Get(name); value != "" {
			header.Set(name, value)
		}
	}
	switch {
	case c.Request.Method == http.MethodOptions:
		header.Set("Tus-Extension", extensions)
		answered.status = http.StatusNoContent
	case c.Request.Method == http.MethodPost:
		header.Set("Location", files.UploadsPath+x.upload.ID) // relative, as the URLs of files are
	}
	if x.upload != nil && c.Request.Method != http.MethodDelete {
		header.Set("Upload-Expires", x.upload.ExpiresAt().Format(http.TimeFormat))
		if x.upload.IsStored {
			header.Set(fileHeader, files.Path+x.upload.FileID())
		}
	}
	c.Status(answered.status)
}

// answer collects what tusd answers.
type answer struct {
	header http.Header
	status int
	body   []byte
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.body = append(a.body, p...)
	return len(p), nil
}

// fail keeps the first error of the store.
func (x *exchange) fail(err error) error {
	if x.failure == nil {
		x.failure = err
	}
	return err
}

// NewUpload implements tus.DataStore.
func (x *exchange) NewUpload(_ context.Context, info tus.FileInfo) (tus.Upload, error) {
	release, err := x.routes.Reserve(x.ctx, x.caller.Tenant, info.Size) // until the upload itself counts
	if err != nil {
		return nil, x.fail(err)
	}
	defer release()
	u := files.Upload{Tenant: x.caller.Tenant, Owner: x.caller.Subject, Name: attachments.CleanName(info.MetaData["filename"]), Type: info.MetaData["filetype"]}
	if len(u.Type) > maxTypeBytes {
		u.Type = ""
	}
	x.upload, err = x.routes.Store.CreateUpload(x.ctx, u, info.Size)
	return x, x.fail(err)
}

// GetUpload implements tus.DataStore. An upload of another subject is unknown.
func (x *exchange) GetUpload(_ context.Context, id string) (tus.Upload, error) {
	u, err := x.routes.Store.FindUpload(x.ctx, x.caller.Tenant, id)
	if err == nil && u.Owner != x.caller.Subject {
		err = files.ErrUnknownUpload
	}
	if err != nil {
		return nil, x.fail(err)
	}
	x.upload = u
	return x, nil
}

// GetInfo implements tus.Upload. It finishes an upload that a process has left complete.
func (x *exchange) GetInfo(ctx context.Context) (tus.FileInfo, error) {
	if x.upload.Offset() == x.upload.Size {
		if err := x.FinishUpload(ctx); err != nil {
			return tus.FileInfo{}, err
		}
	}
	info := tus.FileInfo{ID: x.upload.ID, Size: x.upload.Size, Offset: x.upload.Offset(), MetaData: tus.MetaData{}}
	if x.upload.Name != "" {
		info.MetaData["filename"] = x.upload.Name
	}
	if x.upload.Type != "" {
		info.MetaData["filetype"] = x.upload.Type
	}
	return info, nil
}

// WriteChunk implements tus.Upload. tusd has compared the offset with that of GetInfo. Its reader hides the
// bytes after the end of the upload, which Append refuses, and the errors of the body.
func (x *exchange) WriteChunk(context.Context, int64, io.Reader) (int64, error) {
	n, err := x.routes.Store.Append(x.ctx, x.upload, x.body)
	return n, x.fail(err)
}

// FinishUpload implements tus.Upload.
func (x *exchange) FinishUpload(context.Context) error {
	isNew, err := x.routes.Store.FinishUpload(x.ctx, x.upload)
	if _, isThreat := errors.AsType[*files.ThreatError](err); isNew || isThreat {
		auditing.As(x.ctx, audit.UploadFile)
	}
	if isNew {
		auditing.Detail(x.ctx, "file", x.upload.FileID())
	}
	return x.fail(err)
}

// GetReader implements tus.Upload. An upload cannot be read before it is a file.
func (x *exchange) GetReader(context.Context) (io.ReadCloser, error) {
	return nil, tus.ErrNotImplemented
}

// AsTerminatableUpload returns the upload as tusd deletes it.
func (x *exchange) AsTerminatableUpload(tus.Upload) tus.TerminatableUpload { return x }

// Terminate deletes the upload.
func (x *exchange) Terminate(context.Context) error {
	return x.fail(x.routes.Store.DeleteUpload(x.ctx, x.upload.Tenant, x.upload.ID))
}
