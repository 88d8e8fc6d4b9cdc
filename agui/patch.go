package agui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// maxPatchCopy bounds what the copy operations of one patch may add, because
// a few dozen of them can double a document each.
const maxPatchCopy = 16 << 20

var patchOps = []string{"add", "remove", "replace", "move", "copy", "test"}

// ErrPatch is a patch that does not apply to a document: clients skip it, as a whole.
var ErrPatch = errors.New("agui: the patch does not apply")

// Patch applies an RFC 6902 patch to a JSON value as a client does. The error is a *DecodeError for
// a patch that is malformed, which would be fatal to a client, and else an ErrPatch.
func Patch(doc, patch json.RawMessage) (json.RawMessage, error) {
	var r Reducer
	next, ok, err := r.patch(EventStateDelta, "", doc, patch)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("%w: %s", ErrPatch, r.warnings[len(r.warnings)-1].Detail)
	}
	return next, nil
}

// checkPatch returns what makes raw, valid JSON, a malformed patch. An
// operation of an unknown kind is not malformed but unrecognized.
func checkPatch(raw []byte) *DecodeError {
	if raw[0] != '[' {
		return &DecodeError{Detail: "must be an array of operations, is " + describe(raw)}
	}
	d := &decoder{}
	eachElement(raw, func(i int, op []byte) bool {
		d.at.enterIndex(i)
		d.patchOp(op)
		d.at.leave()
		return d.err == nil
	})
	bad, _ := d.err.(*DecodeError) //nolint:errorlint // the decoder never wraps its own error
	return bad
}

// patchOp checks one operation. Operations are open objects: members that
// their kind does not define mean nothing.
func (d *decoder) patchOp(raw []byte) {
	if raw[0] != '{' {
		d.fail("", "must be an object, is "+describe(raw))
		return
	}
	d.members = appendMembers(d.members[:0], raw)
	var op string
	d.variant("op", &op, patchOps)
	if !slices.Contains(patchOps, op) {
		return
	}
	d.pointer("path")
	switch op {
	case "add", "replace", "test":
		d.take("value", required)
	case "move", "copy":
		d.pointer("from")
	}
}

func (d *decoder) pointer(name string) {
	var s string
	if d.stringInto(name, &s, required) && !validPointer(s) {
		d.fail(name, fmt.Sprintf("must be a JSON pointer, is %q", s))
	}
}

// knownOps returns the patch without the operations of unknown kinds, and the
// indices of those. raw must have passed checkPatch.
func knownOps(raw json.RawMessage) (kept json.RawMessage, dropped []int) {
	kept = json.RawMessage{'['}
	eachElement(raw, func(i int, op []byte) bool {
		d := &decoder{members: appendMembers(nil, op)}
		var kind string
		if d.text("op", &kind, required); !slices.Contains(patchOps, kind) {
			dropped = append(dropped, i)
			return true
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, op...)
		return true
	})
	if dropped == nil {
		return raw, nil
	}
	return append(kept, ']'), dropped
}

// applyPatch applies an RFC 6902 patch to any JSON value, all of it or nothing.
func applyPatch(doc, patch json.RawMessage) (json.RawMessage, error) {
	ops, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	// The library's root is an object or an array, and its operations on the
	// root itself are special cases. State may be any value, so the document
	// goes one level down.
	wrapped := append(append([]byte(`{"d":`), doc...), '}')
	for _, op := range ops {
		if err := lowerPointers(op); err != nil {
			return nil, err
		}
	}
	out, err := ops.ApplyWithOptions(wrapped, &jsonpatch.ApplyOptions{AccumulatedCopySizeLimit: maxPatchCopy})
	if err != nil {
		return nil, err
	}
	members := appendMembers(nil, out)
	if len(members) == 0 { // the document itself was removed
		return json.RawMessage("null"), nil
	}
	if TooDeep(members[0].value) {
		return nil, errors.New("what it makes " + tooDeep)
	}
	return capture(members[0].value), nil
}

func lowerPointers(op jsonpatch.Operation) error {
	for _, name := range []string{"path", "from"} {
		raw, ok := op[name]
		if !ok || raw == nil || (*raw)[0] != '"' {
			continue
		}
		pointer := stringBytes(*raw)
		// The library takes an empty token for the container itself.
		if bytes.HasSuffix(pointer, []byte("/")) || bytes.Contains(pointer, []byte("//")) {
			return fmt.Errorf("pointer %q has an empty member name, which is not supported", pointer)
		}
		lowered := json.RawMessage(appendString(nil, "/d"+string(pointer)))
		op[name] = &lowered
	}
	return nil
}
