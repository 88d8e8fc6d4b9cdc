package e2e

import (
	"testing"
)

// A run dies while no worker has ever looked at it: its workflow is terminated by an operator. Its
// viewers are told, however they came, and so is whoever sends the same again; then the thread goes
// on.
func TestTerminatedBeforeItBegan(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	a := c.startAPI(t)
	in, answer := newInput(say("Is anybody there?")), say("Now there is.")
	sender := a.follow(t, in)
	joined := a.reader(t, in)
	joined.view = eventsPath(in) + "?join=true"
	if err := joined.connect(); err != nil {
		t.Fatal(err)
	}
	temporal, err := a.temporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer temporal.Close()
	if err := temporal.TerminateWorkflow(t.Context(), "thread/default/"+in.ThreadID, "", "under test"); err != nil {
		t.Fatal(err)
	}
	for what, f := range map[string]*follower{"who sent it": sender, "who joined": joined} {
		f.finish(t)
		if last := f.events[len(f.events)-1]; last.member("code") != "workflow_terminated" {
			t.Errorf("%s: it ended with %s", what, last.Data)
		}
		wantMessages(t, in.Messages, show(t, in.Messages, f.events))
	}
	same(t, "the same input again", sender.events, a.run(t, in))

	c.startWorker(t)
	next := in
	next.RunID, next.Messages = "run-2", append(in.Messages[:1:1], user(say("And now?")))
	sharedModel.answerWith(t, next.Messages[1].Content, answer)
	wantMessages(t, append(next.Messages, says(answer)), show(t, next.Messages, a.run(t, next)))
}
