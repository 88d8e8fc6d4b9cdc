package protobuf

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/perdure/perdure/agui"
)

// wire is the visitor to whom a message shows its fields, in the order of their numbers. There are
// two, the writer and the reader, so that the two directions cannot disagree. A value that agui
// takes for absent (an empty string, nil) is not on the wire.
type wire interface {
	// reads says that values are being filled in.
	reads() bool
	text(n protowire.Number, s *string)
	// content is a string that may be there and empty.
	content(n protowire.Number, s **string)
	enum(n protowire.Number, i *int32)
	timestamp(n protowire.Number, i *int64)
	count(n protowire.Number, i **int64)
	flag(n protowire.Number, b **bool)
	texts(n protowire.Number, l *[]string)
	// value is a google.protobuf.Value.
	value(n protowire.Number, raw *json.RawMessage)
	// object is a google.protobuf.Struct.
	object(n protowire.Number, raw *json.RawMessage)
	metadata(n protowire.Number, m *agui.Metadata)
	// metadataValue is metadata that the protocol declared a Value.
	metadataValue(n protowire.Number, m *agui.Metadata)
	// message is one message; the writer writes it if it is there.
	message(n protowire.Number, there bool, fields func(wire))
	// list calls element for each message: the writer for count ones, the reader for those it has.
	list(n protowire.Number, count int, element func(w wire, i int))
	fail(err error)
}

// listOf returns a list whose elements all have the same fields.
func listOf[T any](w wire, n protowire.Number, l *[]T, fields func(wire, *T)) {
	w.list(n, len(*l), func(w wire, i int) {
		if i == len(*l) {
			var zero T
			*l = append(*l, zero)
		}
		fields(w, &(*l)[i])
	})
}

// constant shows a string that has one value only.
func constant(w wire, n protowire.Number, value string) {
	s := value
	if w.reads() {
		s = ""
	}
	if w.text(n, &s); s != value {
		w.fail(fmt.Errorf("field %d is %.40q, not %q", n, s, value))
	}
}

// required shows a value that is on the wire even if it is null.
func required(w wire, n protowire.Number, raw *json.RawMessage) {
	if *raw != nil || w.reads() {
		w.value(n, raw)
		return
	}
	null := json.RawMessage("null")
	w.value(n, &null)
}
