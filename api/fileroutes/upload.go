package fileroutes

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/attachments"
	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/files"
)

// silence is how long a client may send no byte of a file.
const silence = 30 * time.Second

// uploader returns the caller of a request, if the caller may upload files and the body is not compressed.
// Errors: 403 forbidden, 415 unsupported_media_type.
func (r *Routes) uploader(c *gin.Context) (auth.Principal, error) {
	caller, err := request.Principal(c.Request.Context())
	if err != nil {
		return auth.Principal{}, err
	}
	if err := r.Access.CheckTenant(c.Request.Context(), policy.CreateFile); err != nil {
		return auth.Principal{}, err
	}
	return caller, checkCoding(c)
}

// upload serves POST /v1/files: the body is the file. It answers 201 when the file is durable.
// The body is not buffered. Errors: 400 empty_file, 408 body_timeout, 413 too_large,
// 415 unsupported_media_type, 422 file_infected, 429 quota_exceeded.
func (r *Routes) upload(c *gin.Context) error {
	caller, err := r.uploader(c)
	if err != nil {
		return err
	}
	if mediaType, _, _ := mime.ParseMediaType(c.GetHeader("Content-Type")); mediaType == "multipart/form-data" {
		return problem.New(http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must be the file itself, and not a form with it")
	}
	size := c.Request.ContentLength
	if size > r.Store.MaxSize() {
		c.Header("Connection", "close") // the body is not read
		return r.tooLarge()
	}
	if size < 0 { // unknown
		size = r.Store.MaxSize()
	}
	ctx, leave, err := r.Enter(c.Request.Context())
	if err != nil {
		return err
	}
	defer leave()
	f, err := r.Put(ctx, files.Upload{
		Tenant: caller.Tenant, Owner: caller.Subject, Name: attachments.CleanName(c.Query("name")), Type: c.GetHeader("Content-Type"),
		Body: &body{c.Request.Body, http.NewResponseController(c.Writer)},
	}, size)
	if err != nil {
		c.Header("Connection", "close")
	}
	switch {
	case errors.Is(err, files.ErrTooLarge):
		return r.tooLarge()
	case errors.Is(err, files.ErrEmpty):
		return problem.BadRequest("empty_file", "", "the file has no bytes: send it as the body of the request")
	case errors.Is(err, files.ErrIncomplete):
		return problem.BadRequest("invalid_input", "", "the body could not be read")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem.New(http.StatusRequestTimeout, "body_timeout", fmt.Sprintf("no byte of the body arrived for %s", silence))
	case err != nil:
		return attachments.Problem("", err)
	}
	auditing.Detail(ctx, "file", f.ID)
	c.Header("Location", f.URL())
	return request.WriteJSON(c, http.StatusCreated, fileOf(f))
}

// checkCoding returns the 415 for a compressed body: its size is known only after the work of decompressing
// it.
func checkCoding(c *gin.Context) error {
	if coding := c.GetHeader("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return problem.New(http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must not be compressed")
	}
	return nil
}

// tooLarge returns the 413 for a file that exceeds the largest size.
func (r *Routes) tooLarge() *problem.Problem {
	return problem.New(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("a file may have at most %d bytes", r.Store.MaxSize()))
}

// body reads the body of a request, whose client may send no byte for silence at most. The deadline of
// other bodies is for the whole body.
type body struct {
	io.Reader

	connection *http.ResponseController
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	_ = b.connection.SetReadDeadline(time.Now().Add(silence)) // a recorder of a test has none
	return b.Reader.Read(p)                                   //nolint:wrapcheck // a reader returns io.EOF as it is
}
