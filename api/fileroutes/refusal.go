package fileroutes

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/perdure/perdure/api/attachments"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/files"
)

// refusal returns the problem of a request that the store or tusd refuses; nil = it was accepted.
func (x *exchange) refusal(answered *answer) error {
	if x.failure != nil {
		return x.routes.uploadProblem(x.failure)
	}
	if answered.status < http.StatusBadRequest {
		return nil
	}
	// The body of tusd's error is its code, a colon, and a text. That of HEAD is empty, but HEAD fails
	// only in the store.
	code, detail, _ := strings.Cut(strings.TrimSpace(string(answered.body)), ": ")
	switch code {
	case "ERR_UNSUPPORTED_VERSION":
		return problem.New(http.StatusPreconditionFailed, "unsupported_tus_version", "the header Tus-Resumable must be 1.0.0")
	case "ERR_INVALID_CONTENT_TYPE":
		return problem.New(http.StatusUnsupportedMediaType, "unsupported_media_type", "the Content-Type must be application/offset+octet-stream")
	case "ERR_INVALID_UPLOAD_LENGTH", "ERR_NOT_IMPLEMENTED":
		return problem.BadRequest("invalid_input", "", "the header Upload-Length must be the size of the file in bytes, when the upload is created")
	case "ERR_INVALID_OFFSET":
		return problem.BadRequest("invalid_input", "", "the header Upload-Offset must be the number of bytes that the upload has")
	case "ERR_MISMATCHED_OFFSET":
		return problem.New(http.StatusConflict, "wrong_offset", fmt.Sprintf("the upload has %d bytes: continue there", x.upload.Offset()))
	case "ERR_MAX_SIZE_EXCEEDED":
		return x.routes.tooLarge()
	case "ERR_UPLOAD_SIZE_EXCEEDED":
		return manyBytes()
	}
	if answered.status < http.StatusInternalServerError {
		return problem.BadRequest("invalid_input", "", detail)
	}
	return fmt.Errorf("upload: %s", code)
}

// manyBytes returns the 413 for a body with more bytes than its upload lacks.
func manyBytes() *problem.Problem {
	return problem.New(http.StatusRequestEntityTooLarge, "too_large", "the body has more bytes than the upload lacks: ask for its offset, and send only the bytes that are missing")
}

// uploadProblem maps an error of files about a resumable upload to its answer. A body that breaks off, or is silent
// for too long, is a 503 and not a 408: what has arrived is kept, and clients of tus continue only after a 503.
func (r *Routes) uploadProblem(err error) error {
	switch {
	case errors.Is(err, files.ErrUnknownUpload):
		return problem.Unknown("upload", "")
	case errors.Is(err, files.ErrUploadChanged):
		return problem.New(http.StatusConflict, "upload_changed", "another request continues the upload: ask for its offset, and continue there")
	case errors.Is(err, files.ErrManyParts):
		return problem.New(http.StatusUnprocessableEntity, "too_many_parts", "the upload has too many parts: delete it, and begin one with fewer and larger requests")
	case errors.Is(err, files.ErrManyBytes):
		return manyBytes()
	case errors.Is(err, files.ErrTooLarge):
		return r.tooLarge()
	case errors.Is(err, files.ErrEmpty):
		return problem.BadRequest("empty_file", "", "the header Upload-Length must be at least 1")
	}
	return attachments.Problem("", err)
}
