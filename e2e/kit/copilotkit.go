package kit

import "testing"

// CopilotKit is CopilotKit's runtime in front of agents. It is what browsers talk to; it talks
// to us by a stock HttpAgent.
type CopilotKit struct{ *nodeServer }

// LaunchCopilotKit starts it with agents: a name, the URL of its endpoint, and so on.
func LaunchCopilotKit(t *testing.T, agents ...string) CopilotKit {
	t.Helper()
	server, err := launchNode("copilotkit.mjs", "copilotkit", agents...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("CopilotKit's runtime ended with %v", err)
		}
	})
	return CopilotKit{server}
}

// Talk drives a browser's client, which is of the generation that CopilotKit ships, on a thread.
func (c CopilotKit) Talk(t *testing.T, thread string, runs ...ScriptedRun) (*Driven, []line) {
	t.Helper()
	d := Generation{Name: "v0"}.Drive(t, Shared, Script{URL: c.Url + "/agent/default/run", ThreadID: thread, Runs: runs})
	return d, d.Finish(t)
}

// Connect shows the thread to a browser that comes later, out of what the runtime has kept.
func (c CopilotKit) Connect(t *testing.T, thread string) []Message {
	t.Helper()
	d := Generation{Name: "v0"}.Drive(t, Shared, Script{
		URL: c.Url + "/agent/default/connect", ThreadID: thread, Runs: []ScriptedRun{{RunID: "look"}},
	})
	return d.Finish(t)[0].Messages
}
