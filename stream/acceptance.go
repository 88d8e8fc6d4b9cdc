package stream

import "github.com/perdure/perdure/agui"

// Acceptance is the judgment of an input: the conversation of its run is the thread's first Keep
// messages, then Tail. Package snapshot makes it (Snapshot.Accept) and carries it out
// (Snapshot.Apply). It has the content of new messages only, so its size does not depend on the
// conversation.
type Acceptance struct {
	Keep int `json:"keep"`
	// Last is the ID of the last message that is kept ("" = none). It guards against a conversation
	// that was cut after the input was judged and before its run started.
	Last string `json:"last,omitempty"`
	// Cut tells that the messages after the kept ones leave the conversation, unless Tail names
	// them. Without Cut, messages that join the thread until the run starts are kept as well.
	Cut bool `json:"cut,omitempty"`
	// Append tells that the input only adds messages. It depends on none of the kept ones, so it is
	// also valid for a conversation that was cut meanwhile.
	Append bool          `json:"append,omitempty"`
	Tail   []TailMessage `json:"tail,omitempty"`
	// Updated are new versions of kept system and developer messages. They take the place of the
	// old ones.
	Updated []agui.Message `json:"updated,omitempty"`
	// Differs tells that the conversation is not the client's list, so the client needs a snapshot.
	Differs bool `json:"differs,omitempty"`
	// Moved tells that a MESSAGES_SNAPSHOT alone does not put the client's list in the order of the
	// conversation, because clients leave known messages in their places. Unmoved is how many
	// messages precede the first one of the client that has to move.
	Moved   bool `json:"moved,omitempty"`
	Unmoved int  `json:"unmoved,omitempty"`
}

// TailMessage is one message after the kept ones, by its ID.
type TailMessage struct {
	ID string `json:"id"`
	// Message is the content; nil = the thread already has the message.
	Message *agui.Message `json:"message,omitempty"`
}

// WithoutContent returns the acceptance without messages, for the opening of a run: the proposal
// has the messages.
func (a Acceptance) WithoutContent() Acceptance {
	a.Tail, a.Updated = nil, nil
	return a
}
