package view

import (
	"encoding/json"
	"slices"

	"github.com/perdure/perdure/agui"
)

// CustomRetracted is the name of the CUSTOM event that tells a client that the next
// MESSAGES_SNAPSHOT retracts what it was shown of a failed attempt.
const CustomRetracted = "perdure.retracted"

// The reasons of a CustomRetracted event.
const (
	retractedForRetry = "retry"  // another attempt of the step follows
	retractedForGood  = "failed" // the step has no further attempt
)

// retractedEvent returns the CustomRetracted event with a reason.
func retractedEvent(reason string) agui.Event {
	return &agui.Custom{Name: CustomRetracted, Value: json.RawMessage(`{"reason":"` + reason + `"}`)}
}

// correction is what a snapshot has to correct on a client. A MESSAGES_SNAPSHOT removes most
// messages by lacking them. But clients keep reasoning and activities that a snapshot lacks, if it
// has none of that kind, and no MESSAGES_SNAPSHOT changes the state.
type correction struct {
	reasoningIDs     []string       // IDs of reasoning messages to remove
	activities       []agui.Message // activities to remove, without content
	appended         []agui.Message // messages that follow the conversation in the snapshot
	needsState       bool           // a STATE_SNAPSHOT follows
	withOpenMessages bool           // the snapshot contains the open messages of other agents, which are writing
}

// merge adds another correction, without its appended messages.
func (c *correction) merge(other correction) {
	for _, id := range other.reasoningIDs {
		c.addReasoning(id)
	}
	for _, m := range other.activities {
		c.addActivity(m.ID, m.ActivityType)
	}
	c.needsState = c.needsState || other.needsState
}

// addHidden adds what an event of an attempt leaves that is hidden from the reader: the client may
// have the event from an earlier connection.
func (c *correction) addHidden(raw []byte) error {
	switch agui.TypeOf(raw) {
	case agui.EventReasoningMessageStart, agui.EventActivitySnapshot:
	default:
		return nil
	}
	e, err := agui.Decode(raw)
	if err != nil {
		return err
	}
	switch e := e.(type) {
	case *agui.ReasoningMessageStart:
		c.addReasoning(e.MessageID)
	case *agui.ActivitySnapshot:
		c.addActivity(e.MessageID, e.ActivityType)
	}
	return nil
}

// addReasoning adds a reasoning message, once.
func (c *correction) addReasoning(id string) {
	if !slices.Contains(c.reasoningIDs, id) {
		c.reasoningIDs = append(c.reasoningIDs, id)
	}
}

// addActivity adds an activity, once.
func (c *correction) addActivity(id, activityType string) {
	if slices.ContainsFunc(c.activities, func(m agui.Message) bool { return m.ID == id }) {
		return
	}
	c.activities = append(c.activities, emptyActivity(id, activityType))
}
