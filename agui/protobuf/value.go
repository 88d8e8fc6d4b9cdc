package protobuf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/perdure/perdure/agui"
)

// Field numbers of google/protobuf/struct.proto, which carries open JSON values. The reference
// implementation writes members in their order, and every number as a double.
const (
	valueNull   protowire.Number = 1
	valueNumber protowire.Number = 2
	valueString protowire.Number = 3
	valueBool   protowire.Number = 4
	valueStruct protowire.Number = 5
	valueList   protowire.Number = 6

	// Field numbers of Struct (its entries, with key and value) and of ListValue (its elements).
	structFields protowire.Number = 1
	entryKey     protowire.Number = 1
	entryValue   protowire.Number = 2
	listValues   protowire.Number = 1
)

// maxDepth is the maximum nesting of an open value, the same as in JSON. Here a scalar counts as a
// level.
const maxDepth = agui.MaxDepth + 1

// errTooDeep is the error of a value that exceeds maxDepth.
var errTooDeep = errors.New("a value is nested too deep")

// json writes JSON text as the fields of a Value.
func (w *writer) json(raw json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	w.next(d, maxDepth)
}

// jsonObject writes a JSON object as the entries of a Struct.
func (w *writer) jsonObject(raw json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		w.fail(errors.New("must be an object"))
		return
	}
	w.members(d, maxDepth)
}

// next writes the next value of d as the fields of a Value. depth is the number of levels that are
// left.
func (w *writer) next(d *json.Decoder, depth int) {
	token, err := d.Token()
	switch {
	case err != nil:
		w.fail(err)
		return
	case depth == 0:
		w.fail(errTooDeep)
		return
	}
	switch t := token.(type) {
	case nil:
		w.varint(valueNull, 0)
	case json.Number:
		w.number(t)
	case string:
		w.string(valueString, t)
	case bool:
		w.varint(valueBool, protowire.EncodeBool(t))
	case json.Delim:
		if t == '{' {
			w.nest(valueStruct, func() { w.members(d, depth-1) })
		} else {
			w.nest(valueList, func() { w.elements(d, depth-1) })
		}
	}
}

// number writes the nearest double, like a JSON parser in JavaScript. A value beyond the range
// becomes infinity.
func (w *writer) number(n json.Number) {
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		w.fail(err)
		return
	}
	w.buf = protowire.AppendTag(w.buf, valueNumber, protowire.Fixed64Type)
	w.buf = protowire.AppendFixed64(w.buf, math.Float64bits(f))
}

// members writes the members of an object whose opening brace has been read.
func (w *writer) members(d *json.Decoder, depth int) {
	for w.err == nil && d.More() {
		key, err := d.Token()
		if err != nil {
			w.fail(err)
			return
		}
		name, _ := key.(string) // the decoder guarantees a string
		w.entry(name, func() { w.next(d, depth) })
	}
	w.end(d)
}

// elements writes the elements of an array whose opening bracket has been read.
func (w *writer) elements(d *json.Decoder, depth int) {
	for w.err == nil && d.More() {
		w.nest(listValues, func() { w.next(d, depth) })
	}
	w.end(d)
}

// end reads the closing bracket.
func (w *writer) end(d *json.Decoder) {
	if w.err != nil {
		return
	}
	if _, err := d.Token(); err != nil {
		w.fail(err)
	}
}

// entry writes one entry of a Struct.
func (w *writer) entry(name string, value func()) {
	w.nest(structFields, func() {
		if name != "" {
			w.string(entryKey, name)
		}
		w.nest(entryValue, value)
	})
}

// jsonReader converts values to JSON text. depth is the number of levels that are left.
type jsonReader struct{ depth int }

// value appends a Value as JSON. The last member of the oneof takes precedence. Consecutive
// occurrences of the same message member are merged, as in Protocol Buffers. A Value without a
// member is an error.
func (j jsonReader) value(dst []byte, r *reader) ([]byte, error) {
	if j.depth == 0 {
		return nil, errTooDeep
	}
	j.depth--
	var kind field
	var message *reader
	r.each(func(f field) {
		switch {
		// An unknown number or an unexpected wire type.
		case f.number > valueList || valueKinds[f.number] != f.kind:
		// A scalar replaces whatever came before it.
		case f.number < valueStruct:
			kind, message = f, nil
		// The same message member again: its fields continue the message.
		case f.number == kind.number:
			message.segments = append(message.segments, f.bytes)
		default:
			kind, message = f, &reader{segments: [][]byte{f.bytes}}
		}
	})
	if r.err != nil {
		return nil, r.err
	}
	switch kind.number {
	case valueNull:
		return append(dst, "null"...), nil
	case valueNumber:
		return appendNumber(dst, math.Float64frombits(kind.bits))
	case valueString:
		return appendString(dst, kind.bytes, r)
	case valueBool:
		return strconv.AppendBool(dst, protowire.DecodeBool(kind.bits)), nil
	case valueStruct:
		return j.object(dst, message)
	case valueList:
		return j.list(dst, message)
	}
	return nil, errors.New("a value has no kind")
}

// valueKinds are the wire types of the fields of a Value.
var valueKinds = [...]protowire.Type{
	valueNull: protowire.VarintType, valueNumber: protowire.Fixed64Type, valueString: protowire.BytesType,
	valueBool: protowire.VarintType, valueStruct: protowire.BytesType, valueList: protowire.BytesType,
}

// appendNumber appends a number. It fails for NaN and infinity, which JSON cannot represent.
func appendNumber(dst []byte, f float64) ([]byte, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("a number is not one of JSON: %w", err)
	}
	return append(dst, text...), nil
}

// appendString appends a string of r as JSON. It fails if the string is not UTF-8.
func appendString(dst, s []byte, r *reader) ([]byte, error) {
	dst = appendQuoted(dst, r.string(s))
	return dst, r.err
}

// appendQuoted appends s as a JSON string, without HTML escaping.
func appendQuoted(dst []byte, s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // cannot fail
	return append(dst, bytes.TrimRight(b.Bytes(), "\n")...)
}

// object appends a Struct as a JSON object. For a duplicate key the last value takes precedence, as
// in a Protocol Buffers map, at the position of the first.
func (j jsonReader) object(dst []byte, r *reader) ([]byte, error) {
	type entry struct {
		key   []byte
		value *reader
	}
	var entries []entry
	at := make(map[string]int)
	r.each(func(f field) {
		if f.number != structFields || f.kind != protowire.BytesType {
			return
		}
		sub := &reader{segments: [][]byte{f.bytes}}
		key, _ := sub.last(entryKey, protowire.BytesType)
		value := sub.sub(entryValue)
		if sub.err != nil || value == nil {
			r.fail(errors.Join(sub.err, errors.New("an entry is malformed")))
			return
		}
		i, known := at[string(key.bytes)]
		if !known {
			i = len(entries)
			at[string(key.bytes)] = i
			entries = append(entries, entry{})
		}
		entries[i] = entry{key.bytes, value}
	})
	if r.err != nil {
		return nil, r.err
	}
	dst = append(dst, '{')
	for i, e := range entries {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendString(dst, e.key, r); err != nil {
			return nil, err
		}
		if dst, err = j.value(append(dst, ':'), e.value); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// list appends a ListValue as a JSON array.
func (j jsonReader) list(dst []byte, r *reader) ([]byte, error) {
	dst = append(dst, '[')
	first := true
	r.each(func(f field) {
		if f.number != listValues || f.kind != protowire.BytesType {
			return
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		var err error
		if dst, err = j.value(dst, &reader{segments: [][]byte{f.bytes}}); err != nil {
			r.fail(err)
		}
	})
	return append(dst, ']'), r.err
}

func (r *reader) value(n protowire.Number, raw *json.RawMessage) {
	r.take(n, raw, jsonReader.value)
}

func (r *reader) object(n protowire.Number, raw *json.RawMessage) {
	r.take(n, raw, jsonReader.object)
}

// take sets raw to the JSON text of a field, if the field occurs. as converts its message.
func (r *reader) take(n protowire.Number, raw *json.RawMessage, as func(jsonReader, []byte, *reader) ([]byte, error)) {
	sub := r.sub(n)
	if sub == nil {
		return
	}
	text, err := as(jsonReader{depth: maxDepth}, nil, sub)
	if err != nil {
		r.fail(err)
		return
	}
	*raw = text
}

func (r *reader) metadata(n protowire.Number, m *agui.Metadata) {
	r.metadataAs(n, m, jsonReader.object)
}

func (r *reader) metadataValue(n protowire.Number, m *agui.Metadata) {
	r.metadataAs(n, m, jsonReader.value)
}

// metadataAs sets m to the object in a field, if the field occurs. as converts its message.
func (r *reader) metadataAs(n protowire.Number, m *agui.Metadata, as func(jsonReader, []byte, *reader) ([]byte, error)) {
	var raw json.RawMessage
	r.take(n, &raw, as)
	if raw == nil {
		return
	}
	if err := json.Unmarshal(raw, m); err != nil {
		r.fail(errors.New("metadata must be an object"))
	}
}
