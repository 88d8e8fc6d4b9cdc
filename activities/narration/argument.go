package narration

import "encoding/json"

// argument returns the value of a member of a JSON object, of which there may be only a beginning
// so far. What is not there yet is left out of the value: the rest of a text, of a list, of an
// object. nil means that nothing of the value is there, or that the text is no beginning of an
// object.
func argument(text []byte, name string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(closeJSON(text), &members) != nil {
		return nil
	}
	return members[name]
}

// closeJSON turns the beginning of a JSON text into a text of its own: it is cut where the last
// value is complete, or within the text that it ends in, and everything open is closed. Of what is
// not the beginning of a JSON text it makes something that is none either.
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

// scanner goes through a JSON text. It does not check the grammar: who reads the outcome does.
type scanner struct {
	at   int
	open []byte // what closes the objects and lists that are open
	key  bool   // a text that comes now is the name of a member
	safe int    // up to here there are whole values only
	cut  int    // where to end a text that has begun and not ended; 0 = there is none
}

// next takes one token in. It returns false where the text has to end.
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

// complete ends a value.
func (s *scanner) complete(at int) { s.at, s.safe = at, at }

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

// end ends a text that has not ended. One that names a member is left out.
func (s *scanner) end(at int) bool {
	if !s.key {
		s.cut = at
	}
	return false
}

// escapeLength returns the length of the escape that b begins with, or 0 if it isn't all there:
// both halves of a character that is written as two.
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

func isHighSurrogate(b []byte) bool {
	return b[2]|0x20 == 'd' && (b[3] == '8' || b[3] == '9' || b[3]|0x20 == 'a' || b[3]|0x20 == 'b')
}

// word takes a number or a literal in, which is complete only when something follows it.
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
