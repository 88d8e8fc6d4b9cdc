package view

import "github.com/perdure/perdure/agui"

// residue is what a client keeps of a superseded attempt unless a snapshot takes care of it.
type residue struct {
	reasoned   []string       // ids of reasoning messages
	activities []agui.Message // emptied
	kept       []agui.Message // emptied, of both kinds, and to be in the snapshot in this order
	state      bool           // the state changed
	amid       bool           // others go on speaking, whose words so far are to stay
}
