package view

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// stamp sets the member timestamp of the events of frames: the time of a record, in milliseconds
// since 1970. It does nothing if the reader did not ask for timestamps. Frames share their events
// with other readers, so stamp replaces the events, and does not change them.
func (v *View) stamp(frames []Frame, at time.Time) []Frame {
	if !v.timestamps {
		return frames
	}
	for i, f := range frames {
		frames[i].Event = withTimestamp(f.Event, at)
	}
	return frames
}

// timestampMember begins the member in the JSON of an event.
var timestampMember = []byte(`"timestamp":`)

// withTimestamp returns an event with a timestamp, unless it has one.
func withTimestamp(event []byte, at time.Time) []byte {
	if bytes.Contains(event, timestampMember) { // perhaps in a member of its own
		var members map[string]json.RawMessage
		if err := json.Unmarshal(event, &members); err != nil || members["timestamp"] != nil {
			return event
		}
	}
	stamped := make([]byte, 0, len(event)+len(timestampMember)+16)
	stamped = append(append(stamped, event[:len(event)-1]...), ',')
	stamped = strconv.AppendInt(append(stamped, timestampMember...), at.UnixMilli(), 10)
	return append(stamped, '}')
}
