package narration

import "encoding/json"

// This file reads arguments of a tool call that the model is still writing: from the beginning of a
// JSON object it makes a complete one.

// argument returns the value of a member of a JSON object, of which text may be only a beginning.
// The value has what is complete so far, and the beginning of a string that is not: the rest of a
// string, list or object is left out. nil = nothing of the value has arrived, or text is no
// beginning of an object.
func argument(text []byte, name string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(closeJSON(text), &members) != nil {
		return nil
	}
	return members[name]
}

// closeJSON completes the beginning of a JSON text: it cuts it after the last complete value, or
// within the string in which it ends, and closes the strings, objects and lists that are open. For
// a text that is no beginning of JSON the result is no JSON either.
func closeJSON(text []byte) []byte {
	var s scanner
	for s.at < len(text) {
		if !s.next(text) {
			break
		}
	}
	out := append([]byte{}, text[:s.safe]...)
	if s.cut > 0 {
		out = append(append(out[:0], text[:s.cut]...), '"')
	}
	for i := len(s.open) - 1; i >= 0; i-- {
		out = append(out, s.open[i])
	}
	return out
}

// scanner scans a JSON text token by token. It does not check the grammar, because the decoder of
// the result does. The zero value is ready.
type scanner struct {
	// at is the index of the next token. open has the closing brackets of the objects and lists
	// that are open, the outermost first. key tells that the next string is the name of a member.
	at   int
	open []byte
	key  bool
	// safe is the length of the text up to the last complete value. cut is where a string that has
	// begun has to end, if the text ends in it; 0 = it does not.
	safe int
	cut  int
}

// next takes one token. It returns false if the text ends in it, or after it.
func (s *scanner) next(text []byte) bool {
	switch c := text[s.at]; c {
	case ' ', '\t', '\r', '\n':
		s.at++
	case '{', '[':
		s.open = append(s.open, c+2) // in ASCII the closing one is two further
		s.key = c == '{'
		s.complete(s.at + 1)
	case '}', ']':
		if len(s.open) == 0 || s.open[len(s.open)-1] != c {
			return false
		}
		s.open = s.open[:len(s.open)-1]
		s.key = false
		s.complete(s.at + 1)
		return len(s.open) > 0
	case ',':
		s.key = len(s.open) > 0 && s.open[len(s.open)-1] == '}'
		s.at++
	case ':':
		s.key = false
		s.at++
	case '"':
		return s.text(text)
	default:
		return s.word(text)
	}
	return true
}

// complete notes that a value, or the beginning of an object or list, ends at an index.
func (s *scanner) complete(at int) { s.at, s.safe = at, at }

// text takes a string: a value, or the name of a member. It returns false if the string does not
// end.
func (s *scanner) text(text []byte) bool {
	for i := s.at + 1; i < len(text); {
		switch text[i] {
		case '"':
			if s.key {
				s.at = i + 1
			} else {
				s.complete(i + 1)
			}
			return true
		case '\\':
			// An escape that is not complete would make the string invalid, so the string ends
			// before it.
			n := escapeLength(text[i:])
			if n == 0 {
				return s.end(i)
			}
			i += n
		default:
			i++
		}
	}
	return s.end(len(text))
}

// end notes that the text ends within a string. A name of a member is left out with its value.
func (s *scanner) end(at int) bool {
	if !s.key {
		s.cut = at
	}
	return false
}

// escapeLength returns the length of the escape with which b begins; 0 = it is not complete. A
// character outside of the Basic Multilingual Plane has two escapes, which count as one.
func escapeLength(b []byte) int {
	switch {
	case len(b) < 2:
		return 0
	case b[1] != 'u':
		return 2
	case len(b) < 6:
		return 0
	case !isHighSurrogate(b):
		return 6
	case len(b) < 12 && (len(b) == 6 || b[6] == '\\' && (len(b) == 7 || b[7] == 'u')):
		return 0
	case len(b) >= 12 && b[6] == '\\' && b[7] == 'u':
		return 12
	}
	return 6
}

// isHighSurrogate reports whether an escape \uXXXX is the first half of a surrogate pair: D800 to
// DBFF.
func isHighSurrogate(b []byte) bool {
	return b[2]|0x20 == 'd' && (b[3] == '8' || b[3] == '9' || b[3]|0x20 == 'a' || b[3]|0x20 == 'b')
}

// word takes a number or a literal. It is complete only if something follows it: 1 may become 12.
func (s *scanner) word(text []byte) bool {
	for i := s.at; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\r', '\n', ',', '}', ']', ':':
			if i == s.at { // no character of any value
				return false
			}
			s.complete(i)
			return true
		}
	}
	return false
}
