package protobuf

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// reader looks fields up in one message. A message that occurs several times where one is expected
// is one message, of all their fields in order, so it may lie in several pieces. Fields of unknown
// numbers or of another wire type are skipped.
type reader struct {
	segments [][]byte
	err      error
}

// field is one occurrence of a field. Bytes is for BytesType, number for the others.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte
	bits   uint64
}

// each calls f for the fields, in order, until something fails.
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

// last returns the field's last occurrence, which is the one that counts.
func (r *reader) last(n protowire.Number, kind protowire.Type) (last field, ok bool) {
	r.each(func(f field) {
		if f.number == n && f.kind == kind {
			last, ok = f, true
		}
	})
	return last, ok && r.err == nil
}

// sub returns the message of a field, or nil.
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

func (r *reader) message(n protowire.Number, _ bool, fields func(wire)) {
	sub := r.sub(n)
	if sub == nil {
		return
	}
	fields(sub)
	r.adopt(sub)
}

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

// adopt takes over why a part could not be read; a message whose fields are all unknown is looked
// through here too.
func (r *reader) adopt(sub *reader) {
	sub.each(func(field) {})
	if sub.err != nil {
		r.fail(sub.err)
	}
}
