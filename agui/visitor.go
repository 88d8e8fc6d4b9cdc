package agui

import "encoding/json"

// fielder is a wire object. Its method fields shows every member to a visitor, once and in wire
// order. Encoder, decoder and stripper are the visitors, so they cannot disagree about names and
// rules.
//
// The decoder fills members in the order in which they are shown. A discriminator must precede the
// members that depend on it, and unknown must be last.
type fielder interface{ fields(v visitor) }

// visitor is an operation on the members of a wire object. Each method handles one type of member;
// the name of the member comes first.
type visitor interface {
	// text is a string; an optional string is absent if it is empty.
	text(name string, s *string, n need)
	// word is a string of a closed set; another value is an error.
	word(name string, s *string, n need, set []string)
	// variant is the discriminator of a union: a required string. A value outside of the set is
	// preserved as unknown material.
	variant(name string, s *string, set []string)
	// constant is a member with a fixed value.
	constant(name, value string)
	// timestamp is an optional integer, absent if it is 0.
	timestamp(name string, i *int64)
	// count is an optional non-negative integer, absent if it is nil.
	count(name string, i **int64)
	// flag is an optional boolean, absent if it is nil.
	flag(name string, b **bool)
	// raw is a value that the protocol leaves open.
	raw(name string, r *json.RawMessage, k rawKind)
	metadata(name string, m *Metadata)
	// names is an optional array of strings, absent if it is nil.
	names(name string, l *[]string)
	content(name string, c *Content, allowed contentKind, n need)
	// list is an array of objects.
	list(name string, l sequence, n need)
	// object is a nested object.
	object(name string, o slot, n need)
	// unknown contains all members that have not been shown before it.
	unknown(m *map[string]json.RawMessage)
}

// need is whether a member is required.
type need bool

const (
	optional need = false
	required need = true
)

// rawKind is the set of JSON values that an open member can have.
type rawKind int

const (
	rawOptional       rawKind = iota // absent, or any value except null
	rawRequired                      // any value, including null
	rawOptionalObject                // absent, or an object
	rawObject                        // an object
	rawPatch                         // a JSON Patch (RFC 6902)
)

// sequence is a slice of wire objects, independent of their type.
type sequence interface {
	isNil() bool
	len() int
	at(i int) fielder
	// min is the minimum length.
	min() int
	// makeEmpty sets the slice to an empty one that is not nil.
	makeEmpty()
	// grow appends an element and returns it. Elements are appended one by one: an allocation by
	// announced size would let a small input use much memory.
	grow() fielder
	// retain keeps the elements whose flag in keep is set.
	retain(keep []bool)
}

// slot is a member that is an object, or absent.
type slot interface {
	get() fielder // nil when absent
	// fill sets the member to a new object and returns it.
	fill() fielder
	// clear makes the member absent.
	clear()
}

// pointerTo constrains a type parameter to *T, which must be a fielder.
type pointerTo[T any] interface {
	*T
	fielder
}

// sliceOf implements sequence for a slice of T.
type sliceOf[T any, P pointerTo[T]] struct {
	s     *[]T
	least int // minimum length
}

// listOf returns the sequence of a slice.
func listOf[T any, P pointerTo[T]](s *[]T) sequence { return sliceOf[T, P]{s: s} }

// nonEmptyListOf returns the sequence of a slice that must not be empty if it is present.
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

// slotOf implements slot for a pointer to T.
type slotOf[T any, P pointerTo[T]] struct{ p **T }

// oneOf returns the slot of a pointer.
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
