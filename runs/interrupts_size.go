package runs

// Reserve returns how many bytes decisions about the open interrupts may take, and notifications of
// them; 0 if s is nil.
func (s *Interrupts) Reserve() int {
	if s == nil {
		return 0
	}
	room := s.maxPending()
	for _, item := range s.Items {
		if item.Decision == nil {
			room += maxDecision + item.Approval.maxVotes()*maxVote
		}
	}
	return room
}

// Fits reports whether a payload has room for the interrupts with their run, and for all decisions
// about them.
func (s *Interrupts) Fits(in Input) bool { return s.FitsWith(in, 0) }

// FitsWith is Fits if the payload has more bytes besides. It counts a full queue, and the largest
// decision and all votes for each call.
func (s *Interrupts) FitsWith(in Input, more int) bool {
	if len(s.Items) > MaxInterrupts {
		return false
	}
	in.Queue, in.Resume = nil, nil
	body, err := Encode(ParkedInput{Run: in, Interrupts: s}) //workflowcheck:ignore the same value gives the same text
	room := s.maxPending() + MaxQueue + more
	for _, item := range s.Items {
		room += maxDecision + item.Approval.maxVotes()*maxVote
	}
	return err == nil && len(body)+room <= MaxPayload
}

// FitsAnswered reports whether a payload, which has so many bytes already, has room for decisions
// about all open interrupts.
func (s *Interrupts) FitsAnswered(bytes, decisions int) bool {
	open, _ := s.Open()
	return bytes+(len(open)+decisions)*maxDecision+s.maxPending() <= MaxPayload
}
