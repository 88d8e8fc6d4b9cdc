package agui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// maxPatchCopy is the maximum number of bytes that the copy operations of one patch may add. Each
// of them can double a document, so a few dozen would exhaust memory.
const maxPatchCopy = 16 << 20

// patchOps are the operations of RFC 6902.
var patchOps = []string{"add", "remove", "replace", "move", "copy", "test"}

// ErrPatch is the error of a patch that does not apply to a document. Clients skip such a patch
// completely.
var ErrPatch = errors.New("agui: the patch does not apply")

// Patch applies a JSON Patch (RFC 6902) to a JSON value, like the reference client. A malformed
// patch, on which a client aborts, is a *DecodeError. A patch that does not apply is an ErrPatch.
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

// checkPatch returns why raw, valid JSON, is a malformed patch; nil = it is well-formed. An
// operation of an unknown kind is not malformed, but unknown material.
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

// patchOp checks one operation. RFC 6902 (section 4) ignores members that the operation does not
// define.
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

// pointer checks a required member that is a JSON pointer.
func (d *decoder) pointer(name string) {
	var s string
	if d.stringInto(name, &s, required) && !validPointer(s) {
		d.fail(name, fmt.Sprintf("must be a JSON pointer, is %q", s))
	}
}

// knownOps returns the patch without operations of unknown kinds, and the indices of the removed
// ones. raw must have passed checkPatch.
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

// applyPatch applies a patch to any JSON value, atomically.
func applyPatch(doc, patch json.RawMessage) (json.RawMessage, error) {
	ops, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	// The library requires an object or array as its root, and treats operations on the root
	// specially. State can be any value, so the document becomes the member d of an object.
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
	if len(members) == 0 { // the patch removed the whole document
		return json.RawMessage("null"), nil
	}
	if TooDeep(members[0].value) {
		return nil, errors.New("the patched value " + tooDeep)
	}
	return capture(members[0].value), nil
}

// lowerPointers changes the pointers of an operation for the document that applyPatch wraps.
func lowerPointers(op jsonpatch.Operation) error {
	for _, name := range []string{"path", "from"} {
		raw, ok := op[name]
		if !ok || raw == nil || (*raw)[0] != '"' {
			continue
		}
		pointer := stringBytes(*raw)
		// The library interprets an empty token as the container itself, unlike RFC 6901.
		if bytes.HasSuffix(pointer, []byte("/")) || bytes.Contains(pointer, []byte("//")) {
			return fmt.Errorf("pointer %q has an empty member name, which is not supported", pointer)
		}
		lowered := json.RawMessage(appendString(nil, "/d"+string(pointer)))
		op[name] = &lowered
	}
	return nil
}
