package wire

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote decodes a JSON string literal. It returns false if raw is no string literal. raw must be
// syntactically valid JSON, but may contain invalid UTF-8.
//
// Unlike encoding/json, Unquote does not replace invalid input by U+FFFD. It preserves invalid
// bytes, and encodes an unpaired surrogate as three bytes (the WTF-8 encoding). A [Mender] can then
// join a character that a server split between two deltas.
func Unquote(raw string) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return "", false
	}
	raw = raw[1 : len(raw)-1]
	if !strings.Contains(raw, `\`) {
		return raw, true
	}
	out := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		i := strings.IndexByte(raw, '\\')
		if i < 0 || i+1 == len(raw) {
			return string(append(out, raw...)), true
		}
		out = append(out, raw[:i]...)
		out, raw = appendEscape(out, raw[i+1:])
	}
	return string(out), true
}

// appendEscape decodes the escape sequence at the start of s, without its backslash. It returns the
// extended out and the rest of s.
func appendEscape(out []byte, s string) ([]byte, string) {
	switch s[0] {
	case 'b':
		return append(out, '\b'), s[1:]
	case 'f':
		return append(out, '\f'), s[1:]
	case 'n':
		return append(out, '\n'), s[1:]
	case 'r':
		return append(out, '\r'), s[1:]
	case 't':
		return append(out, '\t'), s[1:]
	case 'u':
		unit, ok := hexUnit(s[1:])
		if !ok {
			return append(out, `\u`...), s[1:]
		}
		return appendUnit(out, unit, s[5:])
	default:
		return append(out, s[0]), s[1:]
	}
}

// appendUnit appends a UTF-16 code unit. If it is a high surrogate and rest begins with its low
// surrogate, appendUnit appends the character of the pair. It returns the remaining rest.
func appendUnit(out []byte, unit rune, rest string) ([]byte, string) {
	if !utf16.IsSurrogate(unit) {
		return utf8.AppendRune(out, unit), rest
	}
	if strings.HasPrefix(rest, `\u`) {
		if low, ok := hexUnit(rest[2:]); ok {
			if r := utf16.DecodeRune(unit, low); r != utf8.RuneError {
				return utf8.AppendRune(out, r), rest[6:]
			}
		}
	}
	// The three-byte encoding of an unpaired surrogate; it is invalid UTF-8.
	return append(out, 0xED, 0x80|byte(unit>>6)&0x3F, 0x80|byte(unit)&0x3F), rest
}

// hexUnit parses four hexadecimal digits at the start of s.
func hexUnit(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	unit, err := strconv.ParseUint(s[:4], 16, 16)
	return rune(unit), err == nil
}

// Mender joins fragments of text to valid UTF-8. A character that is split between two fragments is
// returned with the second. Invalid bytes become U+FFFD. The zero value is ready to use. Each
// stream of text needs its own Mender.
type Mender struct{ pending string }

// Mend returns the text that is complete after the next fragment, which can be "". It keeps an
// incomplete character at the end for the next call.
func (m *Mender) Mend(piece string) string {
	if m.pending == "" && utf8.ValidString(piece) {
		return piece
	}
	s := m.pending + piece
	m.pending = ""
	var out strings.Builder
	for len(s) > 0 {
		if incomplete(s) {
			m.pending = s
			break
		}
		r, size := decodeRune(s)
		out.WriteRune(r)
		s = s[size:]
	}
	return out.String()
}

// Flush ends the text. It returns U+FFFD if an incomplete character is left, else "".
func (m *Mender) Flush() string {
	if m.pending == "" {
		return ""
	}
	m.pending = ""
	return string(utf8.RuneError)
}

// incomplete reports whether s can be the beginning of a character that the next fragment
// completes: the first bytes of a UTF-8 sequence, or a high surrogate without its low surrogate.
func incomplete(s string) bool {
	if !utf8.FullRuneInString(s) || surrogateStart(s) {
		return true
	}
	// A low surrogate (from 0xDC00) cannot begin a pair.
	half, ok := surrogate(s)
	if !ok || half >= 0xDC00 {
		return false
	}
	rest := s[3:]
	return rest == "" || rest == "\xED" || surrogateStart(rest)
}

// surrogateStart reports whether s consists of the first two bytes of an encoded surrogate.
func surrogateStart(s string) bool {
	return len(s) == 2 && s[0] == 0xED && s[1] >= 0xA0 && s[1] <= 0xBF
}

// decodeRune is utf8.DecodeRuneInString for text that can contain encoded surrogate pairs: 6 bytes
// for one character. An unpaired surrogate returns U+FFFD with size 3.
func decodeRune(s string) (rune, int) {
	high, ok := surrogate(s)
	if !ok {
		return utf8.DecodeRuneInString(s)
	}
	if low, ok := surrogate(s[3:]); ok {
		if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
			return r, 6
		}
	}
	return utf8.RuneError, 3
}

// surrogate decodes a surrogate that is encoded in three bytes at the start of s.
func surrogate(s string) (rune, bool) {
	if len(s) < 3 || s[0] != 0xED || s[1] < 0xA0 || s[1] > 0xBF || s[2] < 0x80 || s[2] > 0xBF {
		return 0, false
	}
	return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), true
}
