package httptool

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"

	"github.com/perdure/perdure/internal/secrets"
)

// arguments are the arguments of a call, by name. They match the schema.
type arguments map[string]json.RawMessage

// argumentError is the error, for the model, of an argument that cannot be put into the request.
type argumentError struct {
	text string
}

// Error implements error.
func (e *argumentError) Error() string { return e.text }

// argumentErrorf returns an *argumentError.
func argumentErrorf(format string, args ...any) error {
	return &argumentError{text: "invalid arguments: " + fmt.Sprintf(format, args...)}
}

// scalar returns the text of an argument in a URL. ok is false for null, objects, arrays and a
// missing argument.
func scalar(raw json.RawMessage) (text string, ok bool) {
	switch {
	case len(raw) == 0 || raw[0] == '{' || raw[0] == '[' || raw[0] == 'n':
		return "", false
	case raw[0] == '"':
		err := json.Unmarshal(raw, &text)
		return text, err == nil
	}
	return string(raw), true // numbers and booleans, as written
}

// pathValue returns the value of an argument in the path, not escaped. Escaping keeps the value
// within its segment. Some servers decode the path before they resolve "..", however, so such
// segments are rejected, in any number of encodings.
func (a arguments) pathValue(name string) (string, error) {
	value, ok := scalar(a[name])
	if !ok || value == "" {
		return "", argumentErrorf("/%s: must be a non-empty string, number or boolean, because it is part of the URL's path", name)
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", argumentErrorf("/%s: must have no control characters, because it is part of the URL's path", name)
	}
	// Each iteration removes one level of percent-encoding.
	for decoded := value; ; {
		for segment := range strings.FieldsFuncSeq(decoded, func(r rune) bool { return r == '/' || r == '\\' || r == ';' }) {
			if segment == "." || segment == ".." {
				return "", argumentErrorf("/%s: must have no segment %q, because it is part of the URL's path", name, segment)
			}
		}
		next, err := url.PathUnescape(decoded)
		if err != nil || next == decoded {
			return value, nil
		}
		decoded = next
	}
}

// values returns an argument as values of a query or form parameter. An array has several values,
// an object is JSON, and a missing argument or null has none.
func (a arguments) values(name string) ([]string, error) {
	raw := a[name]
	if text, ok := scalar(raw); ok {
		return []string{text}, nil
	}
	if len(raw) == 0 || raw[0] == 'n' {
		return nil, nil
	}
	if raw[0] == '{' {
		return []string{string(raw)}, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, argumentErrorf("/%s: is not valid JSON", name)
	}
	values := []string{}
	for _, entry := range list {
		if text, ok := scalar(entry); ok {
			values = append(values, text)
		} else {
			values = append(values, string(entry))
		}
	}
	return values, nil
}

// without returns the arguments except for those in used.
func (a arguments) without(used []string) arguments {
	remaining := arguments{}
	for name, value := range a {
		remaining[name] = value
	}
	for _, name := range used {
		delete(remaining, name)
	}
	return remaining
}

// withCaller returns the arguments with the members of the caller that names has. An argument of such
// a name is replaced: a model chooses no caller.
func (a arguments) withCaller(names []string, caller secrets.Caller) (arguments, error) {
	filled := maps.Clone(a)
	for _, name := range names {
		member, ok := strings.CutPrefix(name, callerPrefix)
		if !ok {
			continue
		}
		value, err := caller.Member(member)
		if err != nil {
			return nil, err
		}
		if filled[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	return filled, nil
}

// form returns the arguments as query or form parameters.
func (a arguments) form() (url.Values, error) {
	form := url.Values{}
	for name := range a {
		values, err := a.values(name)
		if err != nil {
			return nil, err
		}
		if len(values) > 0 {
			form[name] = values
		}
	}
	return form, nil
}
