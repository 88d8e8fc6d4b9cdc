package agui

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Warning is something that was tolerated, but should be told to an operator.
type Warning struct {
	// Type is the type of the event concerned.
	Type EventType
	// Pointer is the RFC 6901 pointer of the member concerned; "" is the event.
	Pointer string
	// Detail is a sentence for people.
	Detail string
}

func (w Warning) String() string { return string(w.Type) + " " + w.Pointer + ": " + w.Detail }

// Strip removes from an event what this version of the protocol does not
// describe, as a consumer has to before it acts on the event: unknown members,
// list elements and optional values. It changes e in place and returns one
// warning for each thing removed. An event of unknown type goes entirely: the
// first result is then nil.
//
// A producer's guard uses it the other way round: an event with warnings is
// one that must not be sent.
func Strip(e Event) (Event, []Warning) {
	s := &stripper{event: e.EventType()}
	if _, ok := e.(*UnknownEvent); ok {
		s.warn("", "unrecognized event type "+string(e.EventType())+", event dropped")
		return nil, s.warnings
	}
	e.fields(s)
	e.Base().visit(s)
	return e, s.warnings
}

// StripInput does the same for a request. A request of a newer version, or of
// one that cannot be read, is as good as any other, with a warning.
func StripInput(in *RunAgentInput) []Warning {
	s := &stripper{}
	in.fields(s)
	if concern := versionConcern(in.ProtocolVersion); concern != "" {
		s.warn("/protocolVersion", concern)
	}
	return s.warnings
}

// stripper is the visitor behind Strip.
type stripper struct {
	event    EventType
	at       location
	warnings []Warning
	// foreign says that the object being visited is of a variant we do not
	// know; its container has to drop it.
	foreign bool
}

func (s *stripper) warn(pointer, detail string) {
	s.warnings = append(s.warnings, Warning{Type: s.event, Pointer: pointer, Detail: detail})
}

func (s *stripper) variant(_ string, v *string, set []string) {
	if !slices.Contains(set, *v) {
		s.foreign = true
	}
}

// visit reports whether f is of a variant we do not know.
func (s *stripper) visit(f fielder) bool {
	f.fields(s)
	foreign := s.foreign
	s.foreign = false
	return foreign
}

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
	if slices.Contains(keep, false) {
		l.retain(keep)
	}
}

func (s *stripper) object(name string, o slot, n need) {
	f := o.get()
	if f == nil {
		return
	}
	s.at.enter(name)
	defer s.at.leave()
	switch foreign := s.visit(f); {
	case foreign && n == required:
		s.foreign = true // cannot be left out, so the object around it goes
	case foreign:
		s.warn(s.at.String(), "unrecognized value dropped")
		o.clear()
	}
}

func (s *stripper) content(name string, c *Content, _ contentKind, n need) {
	if c.kind == contentParts {
		s.list(name, listOf(&c.parts), n)
	}
}

func (s *stripper) raw(name string, r *json.RawMessage, k rawKind) {
	if k != rawPatch || len(*r) == 0 || checkPatch(*r) != nil {
		return
	}
	kept, dropped := knownOps(*r)
	for _, i := range dropped {
		s.warn(s.at.member(name)+"/"+strconv.Itoa(i), "unrecognized operation dropped")
	}
	*r = kept
}

func (s *stripper) unknown(m *map[string]json.RawMessage) {
	if s.foreign {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(*m)) {
		s.warn(s.at.member(name), "unrecognized member dropped")
	}
	*m = nil
}

func (s *stripper) text(string, *string, need)           {}
func (s *stripper) word(string, *string, need, []string) {}
func (s *stripper) constant(string, string)              {}
func (s *stripper) timestamp(string, *int64)             {}
func (s *stripper) count(string, **int64)                {}
func (s *stripper) flag(string, **bool)                  {}
func (s *stripper) metadata(string, *Metadata)           {}
func (s *stripper) names(string, *[]string)              {}
