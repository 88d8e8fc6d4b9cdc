package protobuf

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// reader finds fields in one message. According to the Protocol Buffers encoding, several
// occurrences of a non-repeated message are merged, so one message can consist of several segments.
// Unknown field numbers and unexpected wire types are skipped. Methods without a comment implement
// wire.
type reader struct {
	segments [][]byte // occurrences of the message, in order
	err      error    // the first error
}

// field is one occurrence of a field.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte // value of BytesType
	bits   uint64 // value of VarintType and Fixed64Type
}

// each calls f for all fields in order, until an error occurs.
func (r *reader) each(f func(field)) {
	for _, rest := range r.segments {
		for len(rest) > 0 && r.err == nil {
			next, n := consume(rest)
			if n < 0 {
				r.fail(fmt.Errorf("malformed message: %w", protowire.ParseError(n)))
				return
			}
			rest = rest[n:]
			f(next)
		}
	}
}

// consume decodes the first field of b. It returns its length, or a negative error code for
// protowire.ParseError.
func consume(b []byte) (field, int) {
	number, kind, tag := protowire.ConsumeTag(b)
	if tag < 0 {
		return field{}, tag
	}
	f := field{number: number, kind: kind}
	var n int
	switch kind {
	case protowire.VarintType:
		f.bits, n = protowire.ConsumeVarint(b[tag:])
	case protowire.Fixed64Type:
		f.bits, n = protowire.ConsumeFixed64(b[tag:])
	case protowire.BytesType:
		f.bytes, n = protowire.ConsumeBytes(b[tag:])
	default:
		n = protowire.ConsumeFieldValue(number, kind, b[tag:])
	}
	if n < 0 {
		return field{}, n
	}
	return f, tag + n
}

// last returns the last occurrence of a field, which takes precedence over earlier ones in Protocol
// Buffers. ok is false if the field does not occur, or after an error.
func (r *reader) last(n protowire.Number, kind protowire.Type) (last field, ok bool) {
	r.each(func(f field) {
		if f.number == n && f.kind == kind {
			last, ok = f, true
		}
	})
	return last, ok && r.err == nil
}

// sub returns a reader for the message in a field, or nil if the field does not occur.
func (r *reader) sub(n protowire.Number) *reader {
	var segments [][]byte
	r.each(func(f field) {
		if f.number == n && f.kind == protowire.BytesType {
			segments = append(segments, f.bytes)
		}
	})
	if segments == nil || r.err != nil {
		return nil
	}
	return &reader{segments: segments}
}

func (r *reader) reads() bool { return true }

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// string returns b as a string, and fails if it is not UTF-8.
func (r *reader) string(b []byte) string {
	if !utf8.Valid(b) {
		r.fail(errors.New("a string is not UTF-8"))
	}
	return string(b)
}

func (r *reader) text(n protowire.Number, s *string) {
	if f, ok := r.last(n, protowire.BytesType); ok {
		*s = r.string(f.bytes)
	}
}

func (r *reader) content(n protowire.Number, s **string) {
	if f, ok := r.last(n, protowire.BytesType); ok {
		*s = new(r.string(f.bytes))
	}
}

func (r *reader) enum(n protowire.Number, i *int32) {
	if f, ok := r.last(n, protowire.VarintType); ok {
		*i = int32(f.bits) //nolint:gosec // an enum is the lower 32 bits of what is written
	}
}

func (r *reader) timestamp(n protowire.Number, i *int64) {
	if f, ok := r.last(n, protowire.VarintType); ok {
		*i = int64(f.bits) //nolint:gosec // an int64 is written as its 64 bits
	}
}

func (r *reader) count(n protowire.Number, i **int64) {
	if f, ok := r.last(n, protowire.VarintType); ok {
		*i = new(int64(f.bits)) //nolint:gosec // an int64 is written as its 64 bits
	}
}

func (r *reader) flag(n protowire.Number, b **bool) {
	if f, ok := r.last(n, protowire.VarintType); ok {
		*b = new(protowire.DecodeBool(f.bits))
	}
}

func (r *reader) texts(n protowire.Number, l *[]string) {
	r.each(func(f field) {
		if f.number == n && f.kind == protowire.BytesType {
			*l = append(*l, r.string(f.bytes))
		}
	})
}

// message implements wire. A missing message leaves the values unchanged.
func (r *reader) message(n protowire.Number, _ bool, fields func(wire)) {
	sub := r.sub(n)
	if sub == nil {
		return
	}
	fields(sub)
	r.adopt(sub)
}

// list implements wire. Elements are added as they occur, so a small input cannot claim memory for
// many.
func (r *reader) list(n protowire.Number, _ int, element func(w wire, i int)) {
	i := 0
	r.each(func(f field) {
		if f.number != n || f.kind != protowire.BytesType {
			return
		}
		sub := &reader{segments: [][]byte{f.bytes}}
		element(sub, i)
		r.adopt(sub)
		i++
	})
}

// adopt takes over the error of a nested message. It first reads that message to its end, since a
// message with only unknown fields has not been parsed before.
func (r *reader) adopt(sub *reader) {
	sub.each(func(field) {})
	if sub.err != nil {
		r.fail(sub.err)
	}
}
