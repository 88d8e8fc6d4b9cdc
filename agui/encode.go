package agui

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxInteger is the largest integer that every JSON implementation represents exactly (RFC 8259,
// section 6).
const maxInteger = 1<<53 - 1

// EncodeError is the error of a value that must not be sent.
type EncodeError struct {
	// Pointer is the JSON pointer (RFC 6901) of the member; "" is the whole value.
	Pointer string
	// Detail is a description for people.
	Detail string
}

// Error implements error.
func (e *EncodeError) Error() string { return "agui: encode " + e.Pointer + ": " + e.Detail }

// Encode encodes an event as compact JSON with "type" first, without HTML escaping. Optional
// members without a value are omitted, and maps are sorted by key, so the same event always results
// in the same bytes. The error is an *EncodeError for a value that clients must not receive, such
// as an invalid role or a malformed patch.
func Encode(e Event) (json.RawMessage, error) {
	w := &encoder{buf: make([]byte, 0, 192)}
	w.event(e)
	if w.err != nil {
		return nil, w.err
	}
	return w.buf, nil
}

// marshal implements MarshalJSON for a wire object.
func marshal(f fielder) ([]byte, error) {
	w := &encoder{}
	w.value(f)
	if w.err != nil {
		return nil, w.err
	}
	return w.buf, nil
}

// encoder is the visitor that appends members to buf. After an error its output is undefined; the
// first error is kept. Methods without a comment implement visitor.
type encoder struct {
	buf []byte
	at  location // location of the current object, for errors
	err error
	// lean omits optional members that are present but empty. Only digests use it.
	lean bool
}

// event writes an event, with its type first.
func (w *encoder) event(e Event) {
	if u, ok := e.(*UnknownEvent); ok {
		w.unknownEvent(u)
		return
	}
	start := len(w.buf)
	w.buf = append(w.buf, `{"type":"`...)
	w.buf = append(w.buf, e.EventType()...)
	w.buf = append(w.buf, '"')
	e.fields(w)
	e.Base().visit(w)
	w.buf = append(w.buf, '}')
	w.checkUnknown(start, e.Base().Unknown)
}

// unknownEvent writes an event of an unknown type. The type and the base members are those of the
// struct, the others those of JSON.
func (w *encoder) unknownEvent(e *UnknownEvent) {
	if e.Type == "" {
		w.fail("type", "is required")
	}
	w.buf = append(w.buf, `{"type":`...)
	w.buf = appendString(w.buf, string(e.Type))
	if len(e.JSON) > 0 {
		if err := validJSON(e.JSON); err != nil {
			w.fail("", err.Error())
			return
		}
		raw := trimmed(e.JSON)
		if raw[0] != '{' {
			w.fail("", "must be an object, is "+describe(raw))
			return
		}
		for _, m := range appendMembers(nil, raw) {
			if !isBaseMember(string(m.name)) {
				w.name(string(m.name))
				w.buf = appendCompact(w.buf, m.value)
			}
		}
	}
	e.visit(w)
	w.buf = append(w.buf, '}')
}

// value writes one wire object.
func (w *encoder) value(f fielder) {
	w.buf = append(w.buf, '{')
	f.fields(w)
	w.buf = append(w.buf, '}')
}

// fail records an error about a member of the current object; name "" = the object itself.
func (w *encoder) fail(name, detail string) {
	if w.err == nil {
		pointer := w.at.String()
		if name != "" {
			pointer = w.at.member(name)
		}
		w.err = &EncodeError{Pointer: pointer, Detail: detail}
	}
}

// name starts a member: it writes the comma, the name and the colon.
func (w *encoder) name(name string) {
	if w.buf[len(w.buf)-1] != '{' {
		w.buf = append(w.buf, ',')
	}
	w.buf = appendString(w.buf, name)
	w.buf = append(w.buf, ':')
}

func (w *encoder) text(name string, s *string, n need) {
	if *s == "" && n == optional {
		return
	}
	w.name(name)
	w.buf = appendString(w.buf, *s)
}

func (w *encoder) word(name string, s *string, n need, set []string) {
	if *s == "" && n == optional {
		return
	}
	if !slices.Contains(set, *s) {
		w.fail(name, notInSet(*s, set))
		return
	}
	w.text(name, s, n)
}

// variant implements visitor. An unknown variant is written, so that material of other versions
// survives.
func (w *encoder) variant(name string, s *string, _ []string) {
	if *s == "" {
		w.fail(name, "is required")
	}
	w.text(name, s, required)
}

func (w *encoder) constant(name, value string) { w.text(name, &value, required) }

func (w *encoder) timestamp(name string, i *int64) {
	if *i != 0 {
		w.integer(name, *i, -maxInteger)
	}
}

func (w *encoder) count(name string, i **int64) {
	if *i != nil {
		w.integer(name, **i, 0)
	}
}

// integer writes an integer member between least and maxInteger.
func (w *encoder) integer(name string, i, least int64) {
	if i < least || i > maxInteger {
		w.fail(name, fmt.Sprintf("must be between %d and %d, is %d", least, int64(maxInteger), i))
		return
	}
	w.name(name)
	w.buf = strconv.AppendInt(w.buf, i, 10)
}

func (w *encoder) flag(name string, b **bool) {
	if *b != nil {
		w.name(name)
		w.buf = strconv.AppendBool(w.buf, **b)
	}
}

// raw implements visitor. null in an optional member counts as absent.
func (w *encoder) raw(name string, r *json.RawMessage, k rawKind) {
	raw := trimmed(*r)
	switch {
	case len(raw) == 0 || isNull(raw):
		raw = absentRaw(k)
	case !w.checkRaw(name, raw, k):
		return
	}
	if raw != nil {
		w.name(name)
		w.buf = appendCompact(w.buf, raw)
	}
}

// absentRaw returns the JSON that represents a missing value of the kind; nil = the member is
// omitted.
func absentRaw(k rawKind) []byte {
	switch k {
	case rawRequired:
		return []byte("null")
	case rawObject:
		return []byte("{}")
	case rawPatch:
		return []byte("[]")
	default:
		return nil
	}
}

// checkRaw checks an open value, and reports whether no error has occurred so far.
func (w *encoder) checkRaw(name string, raw []byte, k rawKind) bool {
	err := validJSON(raw)
	switch {
	case err != nil:
		w.fail(name, err.Error())
	case TooDeep(raw):
		w.fail(name, tooDeep)
	case (k == rawObject || k == rawOptionalObject) && raw[0] != '{':
		w.fail(name, "must be an object, is "+describe(raw))
	case k == rawPatch:
		if bad := checkPatch(raw); bad != nil && w.err == nil {
			w.err = &EncodeError{Pointer: w.at.member(name) + bad.Pointer, Detail: bad.Detail}
		}
	}
	return w.err == nil
}

func (w *encoder) metadata(name string, m *Metadata) {
	if *m == nil || w.lean && len(*m) == 0 {
		return
	}
	w.name(name)
	w.buf = append(w.buf, '{')
	w.at.enter(name)
	w.members(*m)
	w.at.leave()
	w.buf = append(w.buf, '}')
}

// members writes the members of a map, sorted by name.
func (w *encoder) members(m map[string]json.RawMessage) {
	if len(m) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		value := m[name]
		w.raw(name, &value, rawRequired)
	}
}

func (w *encoder) names(name string, l *[]string) {
	if *l == nil || w.lean && len(*l) == 0 {
		return
	}
	w.name(name)
	w.buf = append(w.buf, '[')
	for i, s := range *l {
		w.comma(i)
		w.buf = appendString(w.buf, s)
	}
	w.buf = append(w.buf, ']')
}

// comma writes the comma before element i.
func (w *encoder) comma(i int) {
	if i > 0 {
		w.buf = append(w.buf, ',')
	}
}

// content implements visitor. It fails for a form that the message's role does not allow.
func (w *encoder) content(name string, c *Content, allowed contentKind, n need) {
	switch {
	case c.kind == 0 && n == required:
		w.fail(name, "is required")
	case c.kind == 0:
	case c.kind&allowed == 0:
		w.fail(name, "must be "+allowed.String())
	case c.kind == contentText:
		w.text(name, &c.text, required)
	case c.kind == contentParts:
		w.list(name, listOf(&c.parts), required)
	default:
		w.raw(name, &c.object, rawObject)
	}
}

func (w *encoder) list(name string, l sequence, n need) {
	if n == optional && (l.isNil() || w.lean && l.len() == 0) {
		return
	}
	if l.len() < l.min() {
		w.fail(name, "must not be empty")
	}
	w.name(name)
	w.buf = append(w.buf, '[')
	w.at.enter(name)
	for i := range l.len() {
		w.comma(i)
		w.at.enterIndex(i)
		w.value(l.at(i))
		w.at.leave()
	}
	w.at.leave()
	w.buf = append(w.buf, ']')
}

func (w *encoder) object(name string, o slot, n need) {
	f := o.get()
	if f == nil {
		if n == required {
			w.fail(name, "is required")
		}
		return
	}
	w.name(name)
	w.at.enter(name)
	w.value(f)
	w.at.leave()
}

func (w *encoder) unknown(m *map[string]json.RawMessage) { w.members(*m) }

// checkUnknown reports an error if a member occurs twice in the event that starts at start, because
// Unknown contains a member that the protocol defines.
func (w *encoder) checkUnknown(start int, unknown map[string]json.RawMessage) {
	if len(unknown) == 0 || w.err != nil {
		return
	}
	seen := make(map[string]bool)
	for _, m := range appendMembers(nil, w.buf[start:]) {
		if seen[string(m.name)] {
			w.fail(string(m.name), "is a described member and cannot be in Unknown")
		}
		seen[string(m.name)] = true
	}
}

// notInSet returns the error detail for a string outside of a set. It limits the length of the
// string.
func notInSet(s string, set []string) string {
	const limit = 40
	if len(s) > limit {
		s = s[:limit] + "…"
	}
	return fmt.Sprintf("must be one of %s, is %q", strings.Join(set, ", "), s)
}

// hexDigits are the digits of \u escapes.
const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string, like encoding/json without HTML escaping; a fuzz test
// compares them. Bytes that are not UTF-8 become U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			dst = appendEscaped(dst, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(append(dst, s[start:i]...), `\ufffd`...)
			start = i + size
		case r == '\u2028' || r == '\u2029': // line terminators of JavaScript
			dst = append(append(dst, s[start:i]...), `\u202`...)
			dst = append(dst, hexDigits[r&0xf])
			start = i + size
		}
		i += size
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// appendEscaped appends the escape sequence of an ASCII character.
func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	default:
		return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
	}
}
