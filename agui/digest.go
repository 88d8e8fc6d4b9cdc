package agui

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Digest identifies the meaning of a request: two requests that a server must
// treat alike have one digest, however their JSON was written. It is the
// SHA-256 of the decoded input as canonical JSON: members sorted, numbers as
// they were written, undescribed members included. An empty list or metadata
// object counts as absent, and so does the state {}. forwardedProps {} differs
// from none, because only the agent knows what they mean.
func (in *RunAgentInput) Digest() [32]byte {
	plain := *in
	if state := trimmed(plain.State); len(state) > 0 && bytes.Equal(appendCompact(nil, state), []byte("{}")) {
		plain.State = nil
	}
	return digest(&plain)
}

// Digest identifies the meaning of a message, in the way of
// RunAgentInput.Digest.
func (m Message) Digest() [32]byte { return digest(&m) }

// digest hashes what was decoded or is about to be encoded. A value that
// cannot be encoded still has a digest of what could be written, and never
// that of a legal value: its error is part of it.
func digest(f fielder) [32]byte {
	w := &encoder{lean: true}
	w.value(f)
	if w.err != nil {
		return sha256.Sum256(append(w.buf, w.err.Error()...))
	}
	return sha256.Sum256(appendCanonical(nil, w.buf))
}

// appendCanonical rewrites valid JSON with sorted members, one spelling of
// each string, numbers as they were written, and no space.
func appendCanonical(dst, raw []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return append(dst, raw...) // not reached: raw is what the encoder wrote
	}
	return appendSorted(dst, v)
}

func appendSorted(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case json.Number:
		return append(dst, v...)
	case string:
		return appendString(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, element := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendSorted(dst, element)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, name), ':')
			dst = appendSorted(dst, v[name])
		}
		return append(dst, '}')
	}
	return dst
}
