package approvals

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/e2e/kit"
)

// TestDecisionIsVisibleToItsClient: a client that has decided sees the effect of its decision in
// every later request.
func TestDecisionIsVisibleToItsClient(t *testing.T) {
	t.Parallel()
	c, err := client.New(client.Config{URL: kit.Shared.URL("")})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 15 {
		in := kit.NewInput(kit.Marked(fmt.Sprintf("Please work it out, %d.", i)))
		prompt := in.Messages[0].Content
		kit.ScriptCalculations(t, prompt, kit.Marked("There you are."), "6*7")
		f := kit.Shared.FollowAgent(t, kit.CarefulPath, in)
		f.Finish(t)
		question := kit.InterruptsOf(t, f.Events)[0]
		results, err := c.Decide(t.Context(), client.Decision{ThreadID: in.ThreadID, ID: question.ID, Decision: client.Approve})
		if err != nil || results[0].Status != http.StatusOK || results[0].Cursor == "" {
			t.Fatalf("batch = %v, %+v, want success with a cursor", err, results)
		}
		var said []string
		for e, err := range c.Follow(t.Context(), in.ThreadID, client.FollowOptions{Once: true}) {
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, string(e.JSON))
			if end, ok := e.Event.(*agui.RunFinished); ok && end.Outcome != nil && end.Outcome.Type == agui.OutcomeInterrupt {
				t.Errorf("round %d: interrupt is shown again, want it hidden: %s", i, e.JSON)
			}
		}
		if !slices.ContainsFunc(said, func(e string) bool { return strings.Contains(e, "There you are.") }) {
			t.Errorf("round %d: events of the thread = %q, want the answer", i, said)
		}
	}
}
