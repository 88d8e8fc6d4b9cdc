package protobuf

import (
	"encoding/json"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/perdure/perdure/agui"
)

// writer writes messages in one pass. The length of a message precedes it, but is known only at its
// end. Therefore buf contains everything except for the lengths of nested messages, and marks
// contains these lengths with their positions. Methods without a comment implement wire.
type writer struct {
	buf   []byte
	marks []mark // in the order of their positions
	// prefixes is the encoded size of all lengths that are known so far, in bytes.
	prefixes int
	err      error
}

// mark is the length of a nested message, and its position in buf. The length is 0 while the
// message is open.
type mark struct{ at, length int }

// nest writes a nested message whose fields the function fields writes.
func (w *writer) nest(n protowire.Number, fields func()) {
	w.buf = protowire.AppendTag(w.buf, n, protowire.BytesType)
	at, i, before := len(w.buf), len(w.marks), w.prefixes
	w.marks = append(w.marks, mark{at: at})
	fields()
	// The lengths inside the message are not in buf, but count.
	length := len(w.buf) - at + w.prefixes - before
	w.marks[i].length = length
	w.prefixes += protowire.SizeVarint(uint64(length))
}

// appendTo appends the complete message, with the lengths at their positions.
func (w *writer) appendTo(dst []byte) []byte {
	dst = slices.Grow(dst, len(w.buf)+w.prefixes)
	from := 0
	for _, m := range w.marks {
		dst = append(dst, w.buf[from:m.at]...)
		dst = protowire.AppendVarint(dst, uint64(m.length))
		from = m.at
	}
	return append(dst, w.buf[from:]...)
}

func (w *writer) reads() bool { return false }

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// string writes a string field, also an empty one.
func (w *writer) string(n protowire.Number, s string) {
	w.buf = protowire.AppendTag(w.buf, n, protowire.BytesType)
	w.buf = protowire.AppendString(w.buf, s)
}

// varint writes a varint field, also 0.
func (w *writer) varint(n protowire.Number, i uint64) {
	w.buf = protowire.AppendTag(w.buf, n, protowire.VarintType)
	w.buf = protowire.AppendVarint(w.buf, i)
}

func (w *writer) text(n protowire.Number, s *string) {
	if *s != "" {
		w.string(n, *s)
	}
}

func (w *writer) content(n protowire.Number, s **string) {
	if *s != nil {
		w.string(n, **s)
	}
}

func (w *writer) enum(n protowire.Number, i *int32) {
	if *i != 0 {
		w.varint(n, uint64(*i)) //nolint:gosec // our numbers, all of them positive
	}
}

func (w *writer) timestamp(n protowire.Number, i *int64) {
	if *i != 0 {
		w.varint(n, uint64(*i)) //nolint:gosec // an int64 is written as its 64 bits
	}
}

func (w *writer) count(n protowire.Number, i **int64) {
	if *i != nil {
		w.varint(n, uint64(**i)) //nolint:gosec // an int64 is written as its 64 bits
	}
}

func (w *writer) flag(n protowire.Number, b **bool) {
	if *b != nil {
		w.varint(n, protowire.EncodeBool(**b))
	}
}

func (w *writer) texts(n protowire.Number, l *[]string) {
	for _, s := range *l {
		w.string(n, s)
	}
}

func (w *writer) value(n protowire.Number, raw *json.RawMessage) {
	if len(*raw) > 0 {
		w.nest(n, func() { w.json(*raw) })
	}
}

// object implements wire. The field is required: an absent object is written as an empty one.
func (w *writer) object(n protowire.Number, raw *json.RawMessage) {
	object := *raw
	if len(object) == 0 {
		object = json.RawMessage("{}")
	}
	w.nest(n, func() { w.jsonObject(object) })
}

func (w *writer) metadata(n protowire.Number, m *agui.Metadata) {
	if *m != nil {
		w.nest(n, func() { w.entries(*m) })
	}
}

// metadataValue implements wire: the Struct is wrapped in a Value.
func (w *writer) metadataValue(n protowire.Number, m *agui.Metadata) {
	if *m != nil {
		w.nest(n, func() {
			w.nest(valueStruct, func() { w.entries(*m) })
		})
	}
}

// entries writes the entries of a google.protobuf.Struct, sorted by name.
func (w *writer) entries(m agui.Metadata) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		w.entry(name, func() { w.json(m[name]) })
	}
}

func (w *writer) message(n protowire.Number, there bool, fields func(wire)) {
	if there {
		w.nest(n, func() { fields(w) })
	}
}

func (w *writer) list(n protowire.Number, count int, element func(w wire, i int)) {
	for i := range count {
		w.nest(n, func() { element(w, i) })
	}
}
