package agui

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Warning is a deviation from the protocol that was tolerated, for operators.
type Warning struct {
	// Type is the type of the event; "" for a request.
	Type EventType
	// Pointer is the JSON pointer (RFC 6901) of the member; "" is the whole event.
	Pointer string
	// Detail is a description for people.
	Detail string
}

// String returns the warning as one line.
func (w Warning) String() string { return string(w.Type) + " " + w.Pointer + ": " + w.Detail }

// Strip removes from an event what this version of the protocol does not define: unknown members,
// list elements and optional values. A consumer must do that before it acts on an event. Strip
// changes e, and returns one warning per removed item. For an event of unknown type the first
// result is nil.
//
// A [Guard] uses the warnings for the opposite purpose: a producer must not send an event that has
// any.
func Strip(e Event) (Event, []Warning) {
	s := &stripper{}
	if !s.strip(e) {
		return nil, s.warnings
	}
	return e, s.warnings
}

// undefined returns the warnings of Strip, and does not change e.
func undefined(e Event) []Warning {
	s := &stripper{keeps: true}
	s.strip(e)
	return s.warnings
}

// StripInput is Strip for a request. A newer or invalid protocol version is only a warning.
func StripInput(in *RunAgentInput) []Warning {
	s := &stripper{}
	in.fields(s)
	if concern := versionConcern(in.ProtocolVersion); concern != "" {
		s.warn("/protocolVersion", concern)
	}
	return s.warnings
}

// stripper is the visitor that implements Strip. Methods without a body visit members that cannot
// contain unknown material.
type stripper struct {
	keeps    bool      // nothing is removed: only the warnings are wanted
	event    EventType // for warnings
	at       location  // location of the current object
	warnings []Warning
	// foreign is set if the current object is of an unknown variant; its container must then remove
	// it.
	foreign bool
}

// strip strips an event; it returns false for an event of unknown type.
func (s *stripper) strip(e Event) bool {
	s.event = e.EventType()
	if _, ok := e.(*UnknownEvent); ok {
		s.warn("", "unrecognized event type, event dropped")
		return false
	}
	e.fields(s)
	e.Base().visit(s)
	return true
}

// warn records a warning.
func (s *stripper) warn(pointer, detail string) {
	s.warnings = append(s.warnings, Warning{Type: s.event, Pointer: pointer, Detail: detail})
}

// variant implements visitor.
func (s *stripper) variant(_ string, v *string, set []string) {
	if !slices.Contains(set, *v) {
		s.foreign = true
	}
}

// visit strips a nested object, and reports whether it is of an unknown variant.
func (s *stripper) visit(f fielder) bool {
	f.fields(s)
	foreign := s.foreign
	s.foreign = false
	return foreign
}

// list implements visitor. It removes elements of unknown variants.
func (s *stripper) list(name string, l sequence, _ need) {
	s.at.enter(name)
	keep := make([]bool, l.len())
	for i := range keep {
		s.at.enterIndex(i)
		keep[i] = !s.visit(l.at(i))
		if !keep[i] {
			s.warn(s.at.String(), "unrecognized element dropped")
		}
		s.at.leave()
	}
	s.at.leave()
	if !s.keeps && slices.Contains(keep, false) {
		l.retain(keep)
	}
}

// object implements visitor. It removes an optional object of an unknown variant.
func (s *stripper) object(name string, o slot, n need) {
	f := o.get()
	if f == nil {
		return
	}
	s.at.enter(name)
	defer s.at.leave()
	switch foreign := s.visit(f); {
	case foreign && n == required:
		s.foreign = true // required, so the containing object is removed
	case foreign:
		s.warn(s.at.String(), "unrecognized value dropped")
		if !s.keeps {
			o.clear()
		}
	}
}

// content implements visitor.
func (s *stripper) content(name string, c *Content, _ contentKind, n need) {
	if c.kind == contentParts {
		s.list(name, listOf(&c.parts), n)
	}
}

// raw implements visitor. It removes operations of unknown kinds from a patch. A malformed patch
// stays, for the check that rejects it.
func (s *stripper) raw(name string, r *json.RawMessage, k rawKind) {
	if k != rawPatch || len(*r) == 0 || checkPatch(*r) != nil {
		return
	}
	kept, dropped := knownOps(*r)
	for _, i := range dropped {
		s.warn(s.at.member(name)+"/"+strconv.Itoa(i), "unrecognized operation dropped")
	}
	if !s.keeps {
		*r = kept
	}
}

// unknown implements visitor. An object of an unknown variant is removed as a whole, so its members
// need no warnings.
func (s *stripper) unknown(m *map[string]json.RawMessage) {
	if s.foreign {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(*m)) {
		s.warn(s.at.member(name), "unrecognized member dropped")
	}
	if !s.keeps {
		*m = nil
	}
}

func (s *stripper) text(string, *string, need)           {}
func (s *stripper) word(string, *string, need, []string) {}
func (s *stripper) constant(string, string)              {}
func (s *stripper) timestamp(string, *int64)             {}
func (s *stripper) count(string, **int64)                {}
func (s *stripper) flag(string, **bool)                  {}
func (s *stripper) metadata(string, *Metadata)           {}
func (s *stripper) names(string, *[]string)              {}
