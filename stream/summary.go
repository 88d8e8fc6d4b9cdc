package stream

// Summary notes that a record keeps a text (see Log.Kept) which models are told in the place of messages.
type Summary struct {
	// Seq is the record, set by reduction.
	Seq uint64 `json:"seq,omitempty"`
	// Messages is how many entries it stands for, Digest what they are known by.
	Messages int    `json:"messages"`
	Digest   string `json:"digest"`
}

// Summary is the lane on which summaries are kept for the agent that speaks on a lane: behind those of its tools.
func (l Lane) Summary() Lane { return l.Tool(MaxToolLanes) }
