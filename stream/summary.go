package stream

// Summary tells that a done record keeps a text (see Log.Kept) which replaces the first messages of
// the conversation in requests to models.
type Summary struct {
	// Seq is the sequence of the record. Package snapshot sets it.
	Seq uint64 `json:"seq,omitempty"`
	// Messages is the number of entries that the text replaces; Digest identifies them.
	Messages int    `json:"messages"`
	Digest   string `json:"digest"`
}

// Summary returns the lane on which the summaries for the agent of lane l are written: the slot
// after those of its tools (t8).
func (l Lane) Summary() Lane { return l.Tool(MaxToolLanes) }
