package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/problem"
)

// CheckBodyKind returns a 415 for a body that is compressed, or whose Content-Type is not JSON. A
// body without a Content-Type is accepted as JSON. A compressed body is refused because its size is
// known only after the work of decompressing it.
func CheckBodyKind(r *http.Request) error {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return problem.New(http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must not be compressed")
	}
	kind := r.Header.Get("Content-Type")
	if kind == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(kind)
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return problem.New(http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must be application/json")
	}
	return nil
}

// DecodeObject decodes one JSON object into a pointer to a struct. It refuses members that the
// struct does not have, so that a member with a typing error is not ignored, as well as null and
// text after the object, and more than agui.MaxValues values. It also refuses an object at any depth
// with two members of one name: readers of JSON disagree which one counts, so an approver could see
// other arguments than a tool. Errors are 400 invalid_input, and name the member where encoding/json
// tells it.
func DecodeObject(body []byte, target any) error {
	if err := agui.CheckValues(body); err != nil {
		return problem.Of(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(target)
	var typeErr *json.UnmarshalTypeError
	switch {
	case err == nil:
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) || bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
			return problem.BadRequest("invalid_input", "", "must be one JSON object")
		}
		if pointer := repeatedMember(json.NewDecoder(bytes.NewReader(body)), ""); pointer != "" {
			return problem.BadRequest("invalid_input", fmt.Sprintf("%.500s", pointer), "appears twice")
		}
		return checkSpelling(body, target)
	case errors.As(err, &typeErr) && typeErr.Field == "":
		return problem.BadRequest("invalid_input", "", "must be a JSON object")
	case errors.As(err, &typeErr):
		// Only the last member is named: encoding/json's path leaves out indexes of arrays.
		path := strings.Split(typeErr.Field, ".")
		kind, _, _ := strings.Cut(typeErr.Value, " ") // Value of a number contains its digits
		return problem.BadRequest("invalid_input", "/"+path[len(path)-1], "has the wrong type: "+kind)
	}
	if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok { // encoding/json has no type for this error
		if name, err := strconv.Unquote(quoted); err == nil {
			return unknownMember(name, target)
		}
	}
	return problem.BadRequest("invalid_input", "", "must be JSON")
}

// checkSpelling returns the 400 for a member of an object whose name the struct at target has with
// other upper and lower case letters: encoding/json takes it for that one, so that an object could
// have a member twice.
func checkSpelling(body []byte, target any) error {
	structType := reflect.TypeOf(target).Elem()
	if structType.Kind() != reflect.Struct {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		return problem.BadRequest("invalid_input", "", "must be a JSON object")
	}
	known := members(structType)
	for name := range object {
		if !slices.Contains(known, name) {
			return unknownMember(name, target)
		}
	}
	return nil
}

// unknownMember returns the 400 for a member that the struct at target does not have. It lists the
// members that the struct has.
func unknownMember(name string, target any) *problem.Problem {
	name = fmt.Sprintf("%.80s", name)
	known := strings.Join(members(reflect.TypeOf(target).Elem()), ", ")
	return problem.BadRequest("invalid_input", "/"+escapePointer.Replace(name), fmt.Sprintf("is not a member of this object, which may have %s", known))
}

// escapePointer escapes a name for a JSON pointer (RFC 6901).
var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// repeatedMember returns the JSON pointer to the first member in the next value of a decoder whose
// name its object has before; "" = there is none. The value must be valid JSON that json.Unmarshal
// accepts, which bounds its depth. pointer is that of the value.
func repeatedMember(d *json.Decoder, pointer string) string {
	token, _ := d.Token() // the value is valid
	delimiter, isNested := token.(json.Delim)
	if !isNested {
		return ""
	}
	names := map[string]bool{}
	for i := 0; d.More(); i++ {
		member := strconv.Itoa(i)
		if delimiter == '{' {
			name, _ := d.Token()
			member, _ = name.(string)
			if names[member] {
				return pointer + "/" + escapePointer.Replace(member)
			}
			names[member] = true
		}
		if found := repeatedMember(d, pointer+"/"+escapePointer.Replace(member)); found != "" {
			return found
		}
	}
	_, _ = d.Token() // the closing delimiter
	return ""
}

// members returns the names of the JSON members of a struct, including embedded ones, in its order.
func members(structType reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(structType) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}
