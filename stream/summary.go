package stream

// Summary tells that a record keeps a text (see Log.Kept) that replaces messages for models.
type Summary struct {
	// Seq is the sequence of the record. Package snapshot sets it.
	Seq uint64 `json:"seq,omitempty"`
	// Messages is how many entries it replaces, Digest identifies them.
	Messages int    `json:"messages"`
	Digest   string `json:"digest"`
}

// Summary returns the lane of summaries for the agent of a lane: the slot after those of its tools.
func (l Lane) Summary() Lane { return l.Tool(MaxToolLanes) }
