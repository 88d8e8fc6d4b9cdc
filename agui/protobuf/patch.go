package protobuf

import (
	"encoding/json"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// patchOps are the operations of RFC 6902. The index of an operation is its value in the
// enumeration.
var patchOps = []string{"add", "remove", "replace", "move", "copy", "test"}

// operation is one operation of a JSON Patch. The encoding has no fields for members that RFC 6902
// does not define.
type operation struct {
	op    string
	path  string
	from  *string         // nil = absent
	value json.RawMessage // nil = absent
}

// patch shows a JSON Patch as a repeated message. Package agui stores it as JSON text, so the
// writer parses it and the reader composes it.
func patch(w wire, n protowire.Number, raw *json.RawMessage) {
	var ops []operation
	if !w.reads() {
		var err error
		if ops, err = operationsOf(*raw); err != nil {
			w.fail(err)
			return
		}
	}
	listOf(w, n, &ops, func(w wire, o *operation) {
		// The index is -1 only in the reader, which overwrites the value.
		op := int32(max(slices.Index(patchOps, o.op), 0)) //nolint:gosec // an index
		w.enum(1, &op)
		w.text(2, &o.path)
		w.content(3, &o.from)
		w.value(4, &o.value)
		if w.reads() {
			o.op = operationName(op)
		}
	})
	if w.reads() {
		*raw = appendOperations(nil, ops)
	}
}

// operationsOf decodes a patch, without operations of unknown kinds. It compares member names
// exactly, unlike encoding/json for a struct: "Path" is not "path".
func operationsOf(raw json.RawMessage) ([]operation, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var objects []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &objects); err != nil {
		return nil, err
	}
	ops := make([]operation, 0, len(objects))
	for _, object := range objects {
		o := operation{value: object["value"]}
		for name, to := range map[string]any{"op": &o.op, "path": &o.path, "from": &o.from} {
			if member := object[name]; member != nil {
				if err := json.Unmarshal(member, to); err != nil {
					return nil, err
				}
			}
		}
		if slices.Contains(patchOps, o.op) {
			ops = append(ops, o)
		}
	}
	return ops, nil
}

// operationName returns the name of an operation. A number of a later version becomes its digits,
// an unknown operation, which agui.Strip removes with a warning.
func operationName(op int32) string {
	if op < 0 || int(op) >= len(patchOps) {
		return strconv.Itoa(int(op))
	}
	return patchOps[op]
}

// appendOperations appends the operations as a JSON array.
func appendOperations(dst []byte, ops []operation) []byte {
	dst = append(dst, '[')
	for i, o := range ops {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendQuoted(append(dst, `{"op":`...), o.op)
		dst = appendQuoted(append(dst, `,"path":`...), o.path)
		if o.from != nil {
			dst = appendQuoted(append(dst, `,"from":`...), *o.from)
		}
		if o.value != nil {
			dst = append(append(dst, `,"value":`...), o.value...)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}
