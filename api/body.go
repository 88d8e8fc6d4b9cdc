package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

// timeBody bounds how long a client may take to send its body, whether the handler reads it or net/http discards it after the answer. net/http removes the
// bound at the body's end, because streams may be silent.
func (s *Server) timeBody(c *gin.Context) {
	if c.Request.Body != http.NoBody {
		_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(s.BodyTime)) // a recorder has none
	}
}

// readBody reads a body of limited size.
func (s *Server) readBody(c *gin.Context) ([]byte, error) {
	if err := checkBodyKind(c.Request); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, s.MaxBody))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return nil, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.Header("Connection", "close")
		return nil, problem(http.StatusRequestTimeout, "body_timeout", fmt.Sprintf("the body did not come within %s", s.BodyTime))
	case err != nil:
		return nil, badRequest("invalid_input", "", "the body could not be read")
	}
	return body, nil
}

// checkBodyKind refuses bodies that are declared as anything but plain JSON. A body without a type is accepted.
func checkBodyKind(r *http.Request) error {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must not be compressed")
	}
	kind := r.Header.Get("Content-Type")
	if kind == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(kind)
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must be application/json")
	}
	return nil
}

// readJSON reads a body that is one JSON object, or empty. The value null counts as empty, because clients send it for a missing value.
func (s *Server) readJSON(c *gin.Context, into any) error {
	if c.Request.ContentLength == 0 { // whatever its type
		return nil
	}
	body, err := s.readBody(c)
	if err != nil || len(body) == 0 || bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
		return err
	}
	return decodeObject(body, into)
}

// decodeObject reads one JSON object into a pointer to a struct. It refuses members that the struct does not have, so
// that a member with a typing error is not ignored. The problem names the member.
func decodeObject(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	var mistyped *json.UnmarshalTypeError
	switch {
	case err == nil:
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) || bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
			return badRequest("invalid_input", "", "must be one JSON object")
		}
		return nil
	case errors.As(err, &mistyped) && mistyped.Field == "":
		return badRequest("invalid_input", "", "must be a JSON object")
	case errors.As(err, &mistyped):
		path := strings.Split(mistyped.Field, ".")
		kind, _, _ := strings.Cut(mistyped.Value, " ") // a number is followed by its digits
		return badRequest("invalid_input", "/"+path[len(path)-1], "has the wrong type: "+kind)
	}
	if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok { // the error has no type of its own
		if name, err := strconv.Unquote(quoted); err == nil {
			return unknownMember(name, into)
		}
	}
	return badRequest("invalid_input", "", "must be JSON")
}

func unknownMember(name string, into any) *Problem {
	name = fmt.Sprintf("%.80s", name)
	known := strings.Join(members(reflect.TypeOf(into).Elem()), ", ")
	escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(name) // RFC 6901
	return badRequest("invalid_input", "/"+escaped, fmt.Sprintf("is no member of this object, which may have %s", known))
}

// members are the names of the JSON members of a struct, in its order.
func members(of reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}
