package relay

import (
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/remote"
)

// This file gives the items of a remote run their IDs in the thread:
//
//	item                                  ID
//	────────────────────────────────────────────────────────────────────
//	of an earlier run                     the one that it has
//	of this run                           remote.NewID of the remote run
//	a subagent, and an item of one        remote.NewID of the attempt
//
// Clients accept the ID of a subagent once in a run, also after a retraction, and an item's ID only with
// the same subagent. So the next attempt needs others.

// begin notes which items an event begins, and who owns them; owner "" = the remote agent itself. It
// forgets earlier items with their IDs: some servers number the messages of each run from 1. A call is
// never added to a message of an earlier run.
func (r *Relay) begin(e agui.Event, owner string) {
	var ids []string
	switch e := e.(type) {
	case *agui.TextMessageStart:
		ids = []string{e.MessageID}
	case *agui.ReasoningStart:
		ids = []string{e.MessageID}
	case *agui.ReasoningMessageStart:
		ids = []string{e.MessageID}
	case *agui.ToolCallStart:
		ids = []string{e.ToolCallID, e.ParentMessageID}
	case *agui.ToolCallResult:
		ids = []string{e.MessageID}
	case *agui.ActivitySnapshot:
		r.markOwned(owner, e.MessageID)
	case *agui.SubagentStarted:
		ids, owner = []string{e.SubagentRunID}, e.SubagentRunID
	case *agui.MessagesSnapshot:
		for _, m := range e.Messages {
			r.markOwned(m.SubagentRunID, m.ID)
			for _, c := range m.ToolCalls {
				r.markOwned(m.SubagentRunID, c.ID)
			}
		}
	}
	r.markOwned(owner, ids...)
	for _, id := range ids {
		delete(r.known, remote.OriginalID(r.agent, id))
	}
}

// markOwned notes items of a subagent; "" = they have none.
func (r *Relay) markOwned(owner string, ids ...string) {
	if owner == "" {
		return
	}
	for _, id := range append(ids, owner) {
		r.ofSubagent[remote.OriginalID(r.agent, id)] = true // repeated events have own IDs
	}
}

// OwnID returns the thread's ID of an item that the remote names.
func (r *Relay) OwnID(id string) string {
	if known, ok := r.known[id]; ok {
		return known
	}
	run := r.runID
	if r.ofSubagent[id] {
		run += "/" + r.attempt.Writer()
	}
	return remote.NewID(r.agent, run, id)
}

// renameRepeated changes the IDs of an event of an earlier attempt to those of this one. IDs that are not the
// remote's, such as that of the subagent as which it works here, stay.
func (r *Relay) renameRepeated(e agui.Event) {
	owner := agui.Owner(e)
	if remote.OriginalID(r.agent, owner) == owner {
		owner = ""
	}
	r.begin(e, owner)
	agui.RenameIDs(e, func(id string) string {
		if original := remote.OriginalID(r.agent, id); original != id {
			return r.OwnID(original)
		}
		return id
	})
}
