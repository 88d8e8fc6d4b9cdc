package runs

// Question refers to a question that a tool asked in the middle of a call, or a remote agent at the
// end of a run.
type Question struct {
	// Seq is the record with the question. Number counts the questions of the call, or of the run of
	// the remote agent, from 1.
	Seq    uint64 `json:"seq"`
	Number int    `json:"number"`
	// Remote tells that a remote agent asks: the answer goes to its next run.
	Remote bool `json:"remote,omitempty"`
	// Waits tells that nobody is asked: the call waits for a time or an event.
	Waits bool `json:"waits,omitempty"`
}
