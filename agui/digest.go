package agui

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Digest identifies the meaning of a request: requests that a server must treat alike have the same
// digest, independent of the JSON text. It is the SHA-256 of the decoded input as canonical JSON,
// with sorted members, original number literals, and members that the protocol does not define. An
// empty list, an empty metadata object and the state {} count as absent. forwardedProps {} is
// different from absent, because only the agent can interpret it.
func (in *RunAgentInput) Digest() [32]byte {
	plain := *in
	if state := trimmed(plain.State); len(state) > 0 && bytes.Equal(appendCompact(nil, state), []byte("{}")) {
		plain.State = nil
	}
	return digest(&plain)
}

// Digest identifies the meaning of a message, like RunAgentInput.Digest.
func (m Message) Digest() [32]byte { return digest(&m) }

// digest returns the digest of a wire object. A value that cannot be encoded has a digest as well.
// It includes the error, so it differs from that of every valid value.
func digest(f fielder) [32]byte {
	w := &encoder{lean: true}
	w.value(f)
	if w.err != nil {
		return sha256.Sum256(append(w.buf, w.err.Error()...))
	}
	return sha256.Sum256(appendCanonical(nil, w.buf))
}

// appendCanonical appends valid JSON in canonical form: sorted members, uniform strings, original
// number literals, no space.
func appendCanonical(dst, raw []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return append(dst, raw...) // unreachable: the encoder wrote raw
	}
	return appendSorted(dst, v)
}

// appendSorted appends a decoded value in canonical form.
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
