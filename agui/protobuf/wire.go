package protobuf

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/perdure/perdure/agui"
)

// wire is an operation on the fields of a message: the writer or the reader. A message shows its
// fields to it in the order of their numbers. Because both use the same description, the two
// directions cannot disagree. A value that package agui considers absent (an empty string, nil) is
// not on the wire. n is the field number.
type wire interface {
	// reads returns true for the reader, which sets the values.
	reads() bool
	// text is a string; "" is absent.
	text(n protowire.Number, s *string)
	// content is a string that can be present and empty.
	content(n protowire.Number, s **string)
	// enum is an enumeration; 0 is absent.
	enum(n protowire.Number, i *int32)
	// timestamp is an int64; 0 is absent.
	timestamp(n protowire.Number, i *int64)
	// count is an optional int64.
	count(n protowire.Number, i **int64)
	// flag is an optional bool.
	flag(n protowire.Number, b **bool)
	// texts is a repeated string.
	texts(n protowire.Number, l *[]string)
	// value is a google.protobuf.Value with JSON text.
	value(n protowire.Number, raw *json.RawMessage)
	// object is a google.protobuf.Struct with JSON text.
	object(n protowire.Number, raw *json.RawMessage)
	// metadata is a google.protobuf.Struct.
	metadata(n protowire.Number, m *agui.Metadata)
	// metadataValue is metadata for which the specification declares a google.protobuf.Value.
	metadataValue(n protowire.Number, m *agui.Metadata)
	// message is a nested message. The writer writes it if there is set; the reader calls fields if
	// the field occurs.
	message(n protowire.Number, there bool, fields func(wire))
	// list is a repeated message. The writer calls element count times, the reader once per
	// occurrence.
	list(n protowire.Number, count int, element func(w wire, i int))
	// fail records an error; the first one is kept.
	fail(err error)
}

// listOf shows a repeated message as a slice. The reader appends to the slice.
func listOf[T any](w wire, n protowire.Number, l *[]T, fields func(wire, *T)) {
	w.list(n, len(*l), func(w wire, i int) {
		if i == len(*l) {
			var zero T
			*l = append(*l, zero)
		}
		fields(w, &(*l)[i])
	})
}

// constant shows a string with a fixed value, and fails if the reader finds another one.
func constant(w wire, n protowire.Number, value string) {
	s := value
	if w.reads() {
		s = ""
	}
	if w.text(n, &s); s != value {
		w.fail(fmt.Errorf("field %d is %.40q, not %q", n, s, value))
	}
}

// required shows an open value that must be on the wire: nil is written as null.
func required(w wire, n protowire.Number, raw *json.RawMessage) {
	if *raw != nil || w.reads() {
		w.value(n, raw)
		return
	}
	null := json.RawMessage("null")
	w.value(n, &null)
}
