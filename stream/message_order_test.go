package stream_test

import (
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// TestClientHasOrderOfThread: clients do not move messages that a snapshot repeats. Whatever
// part of the conversation a client sends, it ends with the whole conversation in the order of the
// log.
func TestClientHasOrderOfThread(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, sent string }{
		"the beginning is missing":                   {before: "u1 a1 u2", sent: "u2 a2 u3"},
		"the beginning is missing, nothing new":      {before: "u1 a1 u2", sent: "u2 a2"},
		"only the question":                          {before: "u1 a1 u2", sent: "u2"},
		"a message in the middle is missing":         {before: "u1 a1 u2", sent: "u1 u2 a2 u3"},
		"only the new message":                       {before: "u1 a1 u2", sent: "u3"},
		"some IDs are new":                           {before: "u1 a1 u2", sent: "u8=u1 a1 u9=u2 a2 u3"},
		"appended":                                   {before: "u1 a1 u2", sent: "a2 u2 u3"},
		"the beginning is missing, with reasoning":   {before: "u1 a1 u2 r2", sent: "u2 r2 a2 u3"},
		"reasoning of the beginning is missing":      {before: "u1 r1 a1 u2 r2", sent: "u1 a1 u2 r2 a2 u3"},
		"the right list":                             {before: "u1 a1 u2", sent: "u1 a1 u2 a2 u3"},
		"instructions are new":                       {before: "u1 a1 u2", sent: "s1 u1 a1 u2 a2 u3"},
		"the answer is missing, and a new one is in": {before: "u1 a1 u2", sent: "u1 a1 u2 u3"},
	} {
		for _, profile := range []stream.Generation{stream.Generation0, stream.Generation1} {
			t.Run(name+" "+string(profile), func(t *testing.T) {
				t.Parallel()
				l := streamtest.Open(t)
				second := stream.Run{Thread: thread, ID: "second"}
				runWithList(t, l, stream.Run{Thread: thread, ID: "first"}, snapshot.Claim{Messages: parseMessages(c.before), History: snapshot.HistoryReplace}, parseMessage("a2"))
				claim := snapshot.Claim{Messages: parseMessages(c.sent)}
				if name == "appended" {
					claim.History = snapshot.HistoryAppend
				}
				snap := runWithList(t, l, second, claim)
				frames := availableEvents(t, viewer(streamtest.Follow(t, l)).Run(second, view.Options{Generation: profile}))
				client := agui.NewReducer(parseMessages(c.sent), nil)
				for _, f := range frames {
					e, err := agui.Decode(f.Event)
					if err != nil {
						t.Fatal(err)
					}
					if err := client.Apply(e); err != nil {
						t.Fatal(err)
					}
				}
				if got, want := conversationText(client.Messages()), conversationText(snap.Messages()); got != want {
					t.Errorf("messages of the client: got %s, want %s", got, want)
				}
			})
		}
	}
}
