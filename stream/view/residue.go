package view

import "github.com/perdure/perdure/agui"

// residue is what a client keeps of a superseded attempt unless a snapshot corrects it. A
// MESSAGES_SNAPSHOT removes most messages by lacking them. But clients keep reasoning and
// activities that a snapshot lacks, if it has none of that kind, and no messages snapshot changes
// the state.
type residue struct {
	reasoningIDs  []string       // IDs of reasoning messages
	activities    []agui.Message // without content
	kept          []agui.Message // of both kinds, without content: the snapshot has them in this order
	state         bool           // a STATE_SNAPSHOT is needed
	othersWriting bool           // other agents are writing: the snapshot has to contain their open messages
}
