package runs

// Question refers to a question that a tool asked in the middle of a call.
type Question struct {
	// Seq is the record with the question. Number counts the questions of the call, from 1.
	Seq    uint64 `json:"seq"`
	Number int    `json:"number"`
}
