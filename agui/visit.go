package agui

import "encoding/json"

// fielder is a wire object. Its method fields shows every member, once and in
// wire order, to a visitor. Encoder, decoder and stripper are the three
// visitors, so the three cannot disagree about a name or a rule.
//
// A visitor that decodes fills members in the order they are shown: a
// discriminator must come before the members it decides about, unknown last.
type fielder interface{ fields(v visitor) }

// visitor visits the members of a value. The decoder, the encoder and the stripper are visitors, so
// that each type lists its members once.
type visitor interface {
	// text is a string; an optional one is absent when empty.
	text(name string, s *string, n need)
	// word is a string out of a closed set; any other value is an error.
	word(name string, s *string, n need, set []string)
	// variant is the discriminator of a union: a required string. A value
	// outside the set is kept as material we do not recognize.
	variant(name string, s *string, set []string)
	// constant is a member that can have one value only.
	constant(name, value string)
	// timestamp is an optional integer, absent when 0.
	timestamp(name string, i *int64)
	// count is an optional integer, 0 or more.
	count(name string, i **int64)
	flag(name string, b **bool)
	raw(name string, r *json.RawMessage, k rawKind)
	metadata(name string, m *Metadata)
	names(name string, l *[]string)
	content(name string, c *Content, allowed contentKind, n need)
	list(name string, l sequence, n need)
	object(name string, o slot, n need)
	// unknown is everything that was not shown before.
	unknown(m *map[string]json.RawMessage)
}

// need says whether a member must be there.
type need bool

const (
	optional need = false
	required need = true
)

// rawKind says which JSON values an uninterpreted member may hold.
type rawKind int

const (
	rawOptional       rawKind = iota // absent, or anything but null
	rawRequired                      // anything, null included
	rawOptionalObject                // absent, or an object
	rawObject                        // an object
	rawPatch                         // a JSON Patch
)

// sequence is a slice of objects seen without its element type.
type sequence interface {
	isNil() bool
	len() int
	at(i int) fielder
	// min is the least legal length.
	min() int
	// makeEmpty makes it empty and not nil.
	makeEmpty()
	// grow appends an element. Elements are appended one by one, because
	// sizing by what the input claims would let a small input take much memory.
	grow() fielder
	// retain keeps the elements that keep says, in one pass.
	retain(keep []bool)
}

// slot is an object member: absent, or one object.
type slot interface {
	get() fielder // nil when absent
	fill() fielder
	clear()
}

// pointerTo is *T seen as a fielder.
type pointerTo[T any] interface {
	*T
	fielder
}

type sliceOf[T any, P pointerTo[T]] struct {
	s     *[]T
	least int
}

func listOf[T any, P pointerTo[T]](s *[]T) sequence { return sliceOf[T, P]{s: s} }

// nonEmptyListOf is a list that may not be empty when it is there.
func nonEmptyListOf[T any, P pointerTo[T]](s *[]T) sequence { return sliceOf[T, P]{s: s, least: 1} }

func (l sliceOf[T, P]) isNil() bool      { return *l.s == nil }
func (l sliceOf[T, P]) len() int         { return len(*l.s) }
func (l sliceOf[T, P]) min() int         { return l.least }
func (l sliceOf[T, P]) at(i int) fielder { return P(&(*l.s)[i]) }
func (l sliceOf[T, P]) makeEmpty()       { *l.s = []T{} }

func (l sliceOf[T, P]) grow() fielder {
	var zero T
	*l.s = append(*l.s, zero)
	return P(&(*l.s)[len(*l.s)-1])
}

func (l sliceOf[T, P]) retain(keep []bool) {
	kept := make([]T, 0, len(*l.s))
	for i, ok := range keep {
		if ok {
			kept = append(kept, (*l.s)[i])
		}
	}
	*l.s = kept
}

type slotOf[T any, P pointerTo[T]] struct{ p **T }

func oneOf[T any, P pointerTo[T]](p **T) slot { return slotOf[T, P]{p} }

func (s slotOf[T, P]) get() fielder {
	if *s.p == nil {
		return nil
	}
	return P(*s.p)
}

func (s slotOf[T, P]) fill() fielder {
	*s.p = new(T)
	return P(*s.p)
}

func (s slotOf[T, P]) clear() { *s.p = nil }
