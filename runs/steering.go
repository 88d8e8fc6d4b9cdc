package runs

import "slices"

// Steering is what people said to the run while it was under way. Each model call is told what was
// said since the last one, and a run does not end before all of it was told.
type Steering struct {
	// Steered are the proposals with what was said, by sequence, oldest first.
	Steered []uint64 `json:"steered,omitempty"`
	// Told is how many of them a model call has been told.
	Told int `json:"told,omitempty"`
}

// Has reports whether something was said before: the same proposal is taken once.
func (s *Steering) Has(input uint64) bool { return slices.Contains(s.Steered, input) }

// Add keeps a proposal for the next model call.
func (s *Steering) Add(input uint64) { s.Steered = append(s.Steered, input) }

// Untold returns what no model call has been told.
func (s *Steering) Untold() []uint64 { return s.Steered[s.Told:] }

// Take returns what no model call has been told, for one that is now.
func (s *Steering) Take() []uint64 {
	left := s.Untold()
	s.Told = len(s.Steered)
	return left
}
