package agui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// DecodeError says which member of a document is wrong, and why.
type DecodeError struct {
	// Pointer is the RFC 6901 pointer of the member; "" is the document.
	Pointer string
	// Detail is a sentence for the person who made the document.
	Detail string
}

func (e *DecodeError) Error() string {
	if e.Pointer == "" {
		return "agui: " + e.Detail
	}
	return "agui: " + e.Pointer + ": " + e.Detail
}

// Decode reads one event. It is a tolerant reader of what it does not know and
// a strict one of what it does: an unknown type gives an *UnknownEvent, unknown
// members are kept, null in an optional member counts as absent (peers from
// before 1.0 send it), the retired content part "binary" becomes its
// successor; but a wrong value in a known member is a *DecodeError. Nothing in
// the event aliases raw.
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

// unknownEvent keeps the event in the form Encode writes, so that decoding it
// again gives an equal one.
func (d *decoder) unknownEvent(t EventType, raw []byte) (Event, error) {
	for i := range d.members {
		m := &d.members[i]
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

// TypeOf returns the type of an encoded event without decoding it, or "" when
// there is none. It is fast when "type" comes first, as Encode writes it, and
// then looks at nothing behind it.
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

// knownType is EventType(name) without an allocation for the known ones.
func knownType(name []byte) EventType {
	if t, ok := eventNames[string(name)]; ok {
		return t
	}
	return EventType(name)
}

var eventNames = func() map[string]EventType {
	names := make(map[string]EventType, len(eventTable))
	for t := range eventTable {
		names[string(t)] = t
	}
	return names
}()

// unmarshal decodes any wire object for its UnmarshalJSON.
func unmarshal[T any, P pointerTo[T]](raw []byte, p P) error {
	var fresh T
	d := &decoder{}
	if d.open(raw) {
		P(&fresh).fields(d)
	}
	if d.err != nil {
		return d.err
	}
	*p = fresh
	return nil
}

// decoder is the visitor that takes members out of an object. The first error
// stays and stops all further work.
type decoder struct {
	members []member // of the object being read
	slab    []member // where members live, as a stack
	at      location
	err     error
}

// open checks the document and enters its outermost object.
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
	d.slab = appendMembers(make([]member, 0, 12), raw)
	d.members = d.slab
	return true
}

func (d *decoder) fail(name, detail string) {
	if d.err == nil {
		pointer := d.at.String()
		if name != "" {
			pointer = d.at.member(name)
		}
		d.err = &DecodeError{Pointer: pointer, Detail: detail}
	}
}

// take returns the value of a member, or nil when it is absent. An optional
// null is absent.
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

// find refuses a known member that appears twice: readers disagree on which
// one counts, and TypeOf must agree with Decode.
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

// stringInto reports whether there was a string.
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

// integer accepts 1.0 and 1e3, which JSON Schema calls integers too.
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

// capture keeps an open value, unless it is nested too deep.
func (d *decoder) capture(name string, value []byte) json.RawMessage {
	if TooDeep(value) {
		d.fail(name, tooDeep)
		return nil
	}
	return capture(value)
}

// capture copies a value without insignificant space, so that it does not
// alias the input and survives encoding unchanged.
func capture(value []byte) json.RawMessage {
	return appendCompact(make([]byte, 0, len(value)), value)
}

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

func (d *decoder) array(name string, value []byte) bool {
	if value[0] != '[' {
		d.fail(name, "must be an array, is "+describe(value))
		return false
	}
	return true
}

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

func (d *decoder) elements(name string, value []byte, l sequence) {
	d.at.enter(name)
	eachElement(value, func(i int, element []byte) bool {
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

// into reads one nested object.
func (d *decoder) into(value []byte, f fielder) {
	if value[0] != '{' {
		d.fail("", "must be an object, is "+describe(value))
		return
	}
	outer, depth := d.members, len(d.slab)
	d.slab = appendMembers(d.slab, value)
	d.members = d.slab[depth:len(d.slab):len(d.slab)]
	f.fields(d)
	d.members, d.slab = outer, d.slab[:depth]
}

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
