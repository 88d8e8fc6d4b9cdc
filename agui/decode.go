package agui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// DecodeError is the error of an invalid document.
type DecodeError struct {
	// Pointer is the JSON pointer (RFC 6901) of the invalid member; "" is the whole document.
	Pointer string
	// Detail is a description for the author of the document.
	Detail string
}

// Error implements error.
func (e *DecodeError) Error() string {
	if e.Pointer == "" {
		return "agui: " + e.Detail
	}
	return "agui: " + e.Pointer + ": " + e.Detail
}

// Decode decodes one event. It is tolerant of what it does not know: an unknown type results in an
// *UnknownEvent, and unknown members are kept. It also accepts forms of peers from before 1.0: null
// in an optional member counts as absent, and the retired content part "binary" is converted. It is
// strict with known members: a wrong value is a *DecodeError. The event does not alias raw.
func Decode(raw []byte) (Event, error) {
	d := &decoder{}
	if !d.open(raw) {
		return nil, d.err
	}
	var t string
	d.variant("type", &t, nil)
	if d.err != nil {
		return nil, d.err
	}
	e := newEvent(EventType(t))
	if e == nil {
		return d.unknownEvent(EventType(t), trimmed(raw))
	}
	e.fields(d)
	e.Base().visit(d)
	if d.err != nil {
		return nil, d.err
	}
	return e, nil
}

// unknownEvent returns an event of an unknown type. Its JSON is in the form that Encode writes, so
// encoding and decoding it again results in an equal event.
func (d *decoder) unknownEvent(t EventType, raw []byte) (Event, error) {
	for i := range d.members {
		m := &d.members[i]
		// Only the base members remain for the visit; they must not count as unknown ones.
		m.taken = m.taken || !isBaseMember(string(m.name))
	}
	e := &UnknownEvent{Type: t, JSON: raw}
	e.visit(d)
	if TooDeep(raw) {
		d.fail("", tooDeep)
	}
	if d.err != nil {
		return nil, d.err
	}
	normal, err := Encode(e)
	if err != nil {
		return nil, err
	}
	e.JSON = normal
	return e, nil
}

// TypeOf returns the type of an encoded event without decoding the event, or "" if it has none. It
// is fast if "type" comes first, as Encode writes it: it then does not read, or validate, the rest.
func TypeOf(raw []byte) EventType {
	if t, ok := leadingType(raw); ok {
		return t
	}
	d := &decoder{}
	var t string
	if d.open(raw) {
		d.text("type", &t, required)
	}
	return EventType(t)
}

// leadingType returns the type of an event that begins with the member "type", or false.
func leadingType(raw []byte) (EventType, bool) {
	rest, ok := bytes.CutPrefix(raw, []byte(`{"type":"`))
	if !ok {
		return "", false
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 || bytes.IndexByte(rest[:end], '\\') >= 0 {
		return "", false
	}
	return knownType(rest[:end]), true
}

// knownType returns EventType(name), without an allocation for a known type.
func knownType(name []byte) EventType {
	if t, ok := eventNames[string(name)]; ok {
		return t
	}
	return EventType(name)
}

// eventNames maps the names of the known types to their constants.
var eventNames = func() map[string]EventType {
	names := make(map[string]EventType, len(eventTable))
	for t := range eventTable {
		names[string(t)] = t
	}
	return names
}()

// unmarshal implements UnmarshalJSON for a wire object. It changes *p only on success.
func unmarshal[T any, P pointerTo[T]](raw []byte, p P) error {
	return unmarshalWith(&decoder{}, raw, p)
}

// unmarshalWith is unmarshal with a new decoder.
func unmarshalWith[T any, P pointerTo[T]](d *decoder, raw []byte, p P) error {
	var fresh T
	if d.open(raw) {
		P(&fresh).fields(d)
	}
	if d.err != nil {
		return d.err
	}
	*p = fresh
	return nil
}

// decoder is the visitor that reads members from an object. The first error stops all further work.
// Methods without a comment implement visitor.
type decoder struct {
	members []member // of the current object
	slab    []member // stack that holds the members of all open objects
	at      location // location of the current object, for errors
	err     error
	bounded bool // maxListEntries applies
}

// open validates the document and enters its outermost object. It returns false after an error.
func (d *decoder) open(raw []byte) bool {
	if err := validJSON(raw); err != nil {
		if name, deep := deepMember(raw); deep {
			d.fail(name, tooDeep)
		} else {
			d.fail("", err.Error())
		}
		return false
	}
	raw = trimmed(raw)
	if raw[0] != '{' {
		d.fail("", "must be an object, is "+describe(raw))
		return false
	}
	d.slab = make([]member, 0, 12)
	d.slab = appendMembers(d.slab, raw)
	d.members = d.slab
	return true
}

// fail records an error about a member of the current object; name "" = the object itself.
func (d *decoder) fail(name, detail string) {
	if d.err == nil {
		pointer := d.at.String()
		if name != "" {
			pointer = d.at.member(name)
		}
		d.err = &DecodeError{Pointer: pointer, Detail: detail}
	}
}

// take returns the value of a member, and marks it as known. It returns nil if the member is
// absent. null in an optional member counts as absent.
func (d *decoder) take(name string, n need) []byte {
	value := d.find(name)
	switch {
	case d.err != nil:
		return nil
	case value == nil && n == required:
		d.fail(name, "is required")
	case value != nil && n == optional && isNull(value):
		return nil
	}
	return value
}

// find returns the value of a member, or nil. It rejects a duplicate member: readers disagree about
// which one counts, and TypeOf must agree with Decode.
func (d *decoder) find(name string) []byte {
	var value []byte
	for i := range d.members {
		m := &d.members[i]
		if string(m.name) != name {
			continue
		}
		if value != nil {
			d.fail(name, "appears twice")
			return nil
		}
		m.taken = true
		value = m.value
	}
	return value
}

func (d *decoder) text(name string, s *string, n need) { d.stringInto(name, s, n) }

// stringInto decodes a string member, and reports whether it exists.
func (d *decoder) stringInto(name string, s *string, n need) bool {
	value := d.take(name, n)
	switch {
	case value == nil:
		return false
	case value[0] != '"':
		d.fail(name, "must be a string, is "+describe(value))
		return false
	default:
		*s = string(stringBytes(value))
		return true
	}
}

func (d *decoder) word(name string, s *string, n need, set []string) {
	if d.stringInto(name, s, n) && !slices.Contains(set, *s) {
		d.fail(name, notInSet(*s, set))
	}
}

func (d *decoder) variant(name string, s *string, _ []string) {
	if d.stringInto(name, s, required) && *s == "" {
		d.fail(name, "must not be empty")
	}
}

func (d *decoder) constant(name, value string) {
	var s string
	d.word(name, &s, required, []string{value})
}

func (d *decoder) timestamp(name string, i *int64) {
	if value := d.take(name, optional); value != nil {
		*i = d.integer(name, value, -maxInteger)
	}
}

func (d *decoder) count(name string, i **int64) {
	if value := d.take(name, optional); value != nil {
		*i = new(d.integer(name, value, 0))
	}
}

// integer decodes an integer. It accepts 1.0 and 1e3, which are integers in JSON Schema (2020-12,
// section 6.1.1).
func (d *decoder) integer(name string, value []byte, least int64) int64 {
	f, err := strconv.ParseFloat(string(value), 64)
	i := int64(f)
	if err != nil || float64(i) != f || i < least || i > maxInteger {
		d.fail(name, fmt.Sprintf("must be an integer between %d and %d", least, int64(maxInteger)))
		return 0
	}
	return i
}

func (d *decoder) flag(name string, b **bool) {
	value := d.take(name, optional)
	switch {
	case value == nil:
	case value[0] != 't' && value[0] != 'f':
		d.fail(name, "must be true or false, is "+describe(value))
	default:
		*b = new(value[0] == 't')
	}
}

// raw implements visitor. An optional null counts as absent, a required null is a value.
func (d *decoder) raw(name string, r *json.RawMessage, k rawKind) {
	value := d.take(name, need(k != rawOptional && k != rawOptionalObject))
	if value == nil {
		return
	}
	switch k {
	case rawObject, rawOptionalObject:
		if value[0] != '{' {
			d.fail(name, "must be an object, is "+describe(value))
			return
		}
	case rawPatch:
		if bad := checkPatch(value); bad != nil {
			d.err = &DecodeError{Pointer: d.at.member(name) + bad.Pointer, Detail: bad.Detail}
			return
		}
	case rawOptional, rawRequired:
	}
	*r = d.capture(name, value)
}

// capture copies an open value, unless it exceeds MaxDepth.
func (d *decoder) capture(name string, value []byte) json.RawMessage {
	if TooDeep(value) {
		d.fail(name, tooDeep)
		return nil
	}
	return capture(value)
}

// capture copies a value without insignificant space. The copy does not alias the input, and
// encodes to the same bytes.
func capture(value []byte) json.RawMessage {
	return appendCompact(make([]byte, 0, len(value)), value)
}

// metadata implements visitor. Each member is copied, so the map does not alias the input.
func (d *decoder) metadata(name string, m *Metadata) {
	value := d.take(name, optional)
	if value == nil {
		return
	}
	if value[0] != '{' {
		d.fail(name, "must be an object, is "+describe(value))
		return
	}
	if TooDeep(value) {
		d.fail(name, tooDeep)
		return
	}
	*m = Metadata{}
	for _, entry := range appendMembers(nil, value) {
		(*m)[string(entry.name)] = capture(entry.value)
	}
}

func (d *decoder) names(name string, l *[]string) {
	value := d.take(name, optional)
	if value == nil || !d.array(name, value) {
		return
	}
	*l = []string{}
	d.at.enter(name)
	eachElement(value, func(i int, element []byte) bool {
		if element[0] != '"' {
			d.fail(strconv.Itoa(i), "must be a string, is "+describe(element))
			return false
		}
		*l = append(*l, string(stringBytes(element)))
		return true
	})
	d.at.leave()
}

// array reports whether value is an array, and records an error otherwise.
func (d *decoder) array(name string, value []byte) bool {
	if value[0] != '[' {
		d.fail(name, "must be an array, is "+describe(value))
		return false
	}
	return true
}

// content implements visitor. Binary parts of peers from before 1.0 are converted, see
// upgradeParts.
func (d *decoder) content(name string, c *Content, allowed contentKind, n need) {
	value := d.take(name, n)
	if value == nil {
		return
	}
	switch kind := contentKindOf(value); {
	case kind&allowed == 0:
		d.fail(name, "must be "+allowed.String()+", is "+describe(value))
	case kind == contentText:
		*c = TextContent(string(stringBytes(value)))
	case kind == contentObject:
		*c = ObjectContent(d.capture(name, value))
	default:
		*c = PartsContent(nil)
		d.elements(name, value, listOf(&c.parts))
		c.parts = upgradeParts(c.parts)
	}
}

// contentKindOf returns the kind of content that a JSON value represents; 0 = none.
func contentKindOf(value []byte) contentKind {
	switch value[0] {
	case '"':
		return contentText
	case '[':
		return contentParts
	case '{':
		return contentObject
	default:
		return 0
	}
}

func (d *decoder) list(name string, l sequence, n need) {
	value := d.take(name, n)
	if value == nil || !d.array(name, value) {
		return
	}
	l.makeEmpty()
	d.elements(name, value, l)
	if d.err == nil && l.len() < l.min() {
		d.fail(name, "must not be empty")
	}
}

// elements decodes the objects of an array into l.
func (d *decoder) elements(name string, value []byte, l sequence) {
	d.at.enter(name)
	eachElement(value, func(i int, element []byte) bool {
		if d.bounded && i == maxListEntries {
			d.fail("", fmt.Sprintf("may have at most %d entries", maxListEntries))
			return false
		}
		d.at.enterIndex(i)
		d.into(element, l.grow())
		d.at.leave()
		return d.err == nil
	})
	d.at.leave()
}

func (d *decoder) object(name string, o slot, n need) {
	value := d.take(name, n)
	if value == nil {
		return
	}
	d.at.enter(name)
	d.into(value, o.fill())
	d.at.leave()
}

// into decodes a nested object. The members of the current object are restored afterwards.
func (d *decoder) into(value []byte, f fielder) {
	if value[0] != '{' {
		d.fail("", "must be an object, is "+describe(value))
		return
	}
	outer, depth := d.members, len(d.slab)
	d.slab = appendMembers(d.slab, value)
	// The capacity is limited, so that an append for a deeper object does not overwrite the slab.
	d.members = d.slab[depth:len(d.slab):len(d.slab)]
	f.fields(d)
	d.members, d.slab = outer, d.slab[:depth]
}

// unknown implements visitor. It copies the members that no other method has taken.
func (d *decoder) unknown(m *map[string]json.RawMessage) {
	for _, left := range d.members {
		if left.taken || d.err != nil {
			continue
		}
		if *m == nil {
			*m = make(map[string]json.RawMessage)
		}
		(*m)[string(left.name)] = d.capture(string(left.name), left.value)
	}
}
