package runs

import (
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestRunTerminatedBeforeFirstRecord: an operator terminates a run's workflow before a worker has
// taken it. All readers get that error, and so does a client that sends the same input again. The
// thread takes the next run.
func TestRunTerminatedBeforeFirstRecord(t *testing.T) {
	t.Parallel()
	c := kit.SetupCluster(t)
	a := c.StartAPI(t)
	in, answer := kit.NewInput(kit.Marked("Is anybody there?")), kit.Marked("Now there is.")
	sender := a.Follow(t, in)
	joined := a.NewFollower(t, in)
	joined.AttachPath = kit.EventsPath(in) + "?join=true"
	if err := joined.Connect(); err != nil {
		t.Fatal(err)
	}
	temporal, err := a.DialTemporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer temporal.Close()
	if err := temporal.TerminateWorkflow(t.Context(), "thread/default/"+in.ThreadID, "", "under test"); err != nil {
		t.Fatal(err)
	}
	for what, f := range map[string]*kit.Follower{"who sent it": sender, "who joined": joined} {
		f.Finish(t)
		if last := f.Events[len(f.Events)-1]; last.Member("code") != "workflow_terminated" {
			t.Errorf("%s: end of the run = %s, want workflow_terminated", what, last.Data)
		}
		kit.WantMessages(t, in.Messages, kit.ShownMessages(t, in.Messages, f.Events))
	}
	kit.WantSameEvents(t, "the same input again", sender.Events, a.Run(t, in))

	c.StartWorker(t)
	next := in
	next.RunID, next.Messages = "run-2", append(in.Messages[:1:1], kit.UserMessage(kit.Marked("And now?")))
	kit.SharedModel.AnswerWith(t, next.Messages[1].Content, answer)
	kit.WantMessages(t, append(next.Messages, kit.AssistantMessage(answer)), kit.ShownMessages(t, next.Messages, a.Run(t, next)))
}
