package runs

import "slices"

// Steering are the user messages that clients added to the run while it was active. Each model call
// receives those since the last one, and a run does not end by itself before a model call has
// received all of them.
type Steering struct {
	// Steered are the proposals with the messages, by sequence, oldest first.
	Steered []uint64 `json:"steered,omitempty"`
	// Delivered is how many of them a model call has received.
	Delivered int `json:"delivered,omitempty"`
}

// Has reports whether a message was added before: the same proposal is taken once.
func (s *Steering) Has(input uint64) bool { return slices.Contains(s.Steered, input) }

// Add keeps a message for the next model call.
func (s *Steering) Add(input uint64) { s.Steered = append(s.Steered, input) }

// Pending returns the messages that no model call has received.
func (s *Steering) Pending() []uint64 { return s.Steered[s.Delivered:] }

// TakePending returns the messages that no model call has received, and counts them as delivered:
// for a call that is about to be scheduled.
func (s *Steering) TakePending() []uint64 {
	left := s.Pending()
	s.Delivered = len(s.Steered)
	return left
}

// TakeBack counts the last n of the delivered messages as not delivered: a model call did not receive
// them after all.
func (s *Steering) TakeBack(n int) { s.Delivered -= n }
