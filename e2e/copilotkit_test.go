package e2e

import "testing"

// copilotKit is CopilotKit's runtime in front of agents. It is what browsers talk to; it talks
// to us by a stock HttpAgent.
type copilotKit struct{ *nodeServer }

// launchCopilotKit starts it with agents: a name, the URL of its endpoint, and so on.
func launchCopilotKit(t *testing.T, agents ...string) copilotKit {
	t.Helper()
	server, err := launchNode("copilotkit.mjs", "copilotkit", agents...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.stop(); err != nil {
			t.Errorf("CopilotKit's runtime ended with %v", err)
		}
	})
	return copilotKit{server}
}

// talk drives a browser's client, which is of the generation that CopilotKit ships, on a thread.
func (c copilotKit) talk(t *testing.T, thread string, runs ...scriptedRun) (*driven, []line) {
	t.Helper()
	d := generation{name: "v0"}.drive(t, shared, script{URL: c.url + "/agent/default/run", ThreadID: thread, Runs: runs})
	return d, d.finish(t)
}

// connect shows the thread to a browser that comes later, out of what the runtime has kept.
func (c copilotKit) connect(t *testing.T, thread string) []message {
	t.Helper()
	d := generation{name: "v0"}.drive(t, shared, script{
		URL: c.url + "/agent/default/connect", ThreadID: thread, Runs: []scriptedRun{{RunID: "look"}},
	})
	return d.finish(t)[0].Messages
}

// A chat through CopilotKit: tools, a second turn, and an answer that began and was withdrawn. A
// browser that connects afterwards sees the same.
func TestCopilotKit(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	kit, thread := launchCopilotKit(t, "default", shared.url(assistant)), newThread()
	first, second, third := user(say("Calculate.")), user(say("And once more, please.")), user(say("Thanks."))
	calls := []modelCall{
		{ID: "call_a", Name: "calculate", Arguments: `{"expression":"6*7"}`},
		{ID: "call_b", Name: "calculate", Arguments: `{"expression":"6+7"}`},
	}
	calculated, recovered, bye := say("It is 42 and 13."), say("Once more."), say("Goodbye.")
	sharedModel.answer(t,
		fixture{Match: match{UserMessage: first.Content, HasToolResult: &no}, Response: response{ToolCalls: calls}},
		fixture{Match: match{UserMessage: first.Content, HasToolResult: &yes}, Response: response{Content: calculated}})
	breaksOff := pours(long(400))
	breaksOff.TruncateAfterChunks = 8
	sharedModel.attempts(t, second.Content, breaksOff, answers(recovered))
	sharedModel.answerWith(t, third.Content, bye)

	d, ends := kit.talk(t, thread,
		scriptedRun{RunID: "run-1", Messages: []message{first}},
		scriptedRun{RunID: "run-2", Add: []message{second}},
		scriptedRun{RunID: "run-3", Add: []message{third}})
	want := []message{
		first, callsTools(calls...), result("42"), result("13"), says(calculated),
		second, says(recovered), third, says(bye),
	}
	wantMessages(t, want, byCall(ends[2].Messages))
	if len(d.events(1, "MESSAGES_SNAPSHOT")) == 0 {
		t.Errorf("nothing was withdrawn in the second run: %s", d.types(1))
	}
	wantMessages(t, want, byCall(kit.connect(t, thread)))
}
