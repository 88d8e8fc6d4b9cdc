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

// Open JSON travels as google/protobuf/struct.proto has it. The reference implementation writes
// members in their order and every number as a double.
const (
	valueNull   protowire.Number = 1
	valueNumber protowire.Number = 2
	valueString protowire.Number = 3
	valueBool   protowire.Number = 4
	valueStruct protowire.Number = 5
	valueList   protowire.Number = 6

	// Of Struct: its entries, with key and value; of ListValue: its elements.
	structFields protowire.Number = 1
	entryKey     protowire.Number = 1
	entryValue   protowire.Number = 2
	listValues   protowire.Number = 1
)

// maxDepth is how deep open JSON may be nested: as deep as on the other wire. A scalar is a level
// here.
const maxDepth = agui.MaxDepth + 1

var errTooDeep = errors.New("a value is nested too deep")

// json writes the one kind of a Value.
func (w *writer) json(raw json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	w.next(d, maxDepth)
}

// jsonObject writes the entries of a Struct.
func (w *writer) jsonObject(raw json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		w.fail(errors.New("must be an object"))
		return
	}
	w.members(d, maxDepth)
}

// next writes the next value of d.
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

// number writes the double that is nearest, as every reader of JSON in a browser has it; beyond the
// largest that is infinity.
func (w *writer) number(n json.Number) {
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		w.fail(err)
		return
	}
	w.buf = protowire.AppendTag(w.buf, valueNumber, protowire.Fixed64Type)
	w.buf = protowire.AppendFixed64(w.buf, math.Float64bits(f))
}

func (w *writer) members(d *json.Decoder, depth int) {
	for w.err == nil && d.More() {
		key, err := d.Token()
		if err != nil {
			w.fail(err)
			return
		}
		name, _ := key.(string) // the decoder lets nothing else through
		w.entry(name, func() { w.next(d, depth) })
	}
	w.end(d)
}

func (w *writer) elements(d *json.Decoder, depth int) {
	for w.err == nil && d.More() {
		w.nest(listValues, func() { w.next(d, depth) })
	}
	w.end(d)
}

// end takes the closing bracket.
func (w *writer) end(d *json.Decoder) {
	if w.err != nil {
		return
	}
	if _, err := d.Token(); err != nil {
		w.fail(err)
	}
}

func (w *writer) entry(name string, value func()) {
	w.nest(structFields, func() {
		if name != "" {
			w.string(entryKey, name)
		}
		w.nest(entryValue, value)
	})
}

// jsonReader writes what it reads as JSON.
type jsonReader struct{ depth int }

// value reads a Value: the last of its kinds counts, and a message that is there repeatedly without
// another kind in between is one message.
func (j jsonReader) value(dst []byte, r *reader) ([]byte, error) {
	if j.depth == 0 {
		return nil, errTooDeep
	}
	j.depth--
	var kind field
	var message *reader
	r.each(func(f field) {
		switch {
		case f.number > valueList || valueKinds[f.number] != f.kind:
		case f.number < valueStruct:
			kind, message = f, nil
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

var valueKinds = [...]protowire.Type{
	valueNull: protowire.VarintType, valueNumber: protowire.Fixed64Type, valueString: protowire.BytesType,
	valueBool: protowire.VarintType, valueStruct: protowire.BytesType, valueList: protowire.BytesType,
}

func appendNumber(dst []byte, f float64) ([]byte, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("a number is not one of JSON: %w", err)
	}
	return append(dst, text...), nil
}

func appendString(dst, s []byte, r *reader) ([]byte, error) {
	dst = appendQuoted(dst, r.string(s))
	return dst, r.err
}

func appendQuoted(dst []byte, s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // no string fails
	return append(dst, bytes.TrimRight(b.Bytes(), "\n")...)
}

// object reads a Struct; of entries with one key the last counts.
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
