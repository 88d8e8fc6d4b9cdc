package kit

import "testing"

// CopilotKit is CopilotKit's runtime. Browsers connect to it, and it calls Perdure with a stock
// HttpAgent.
type CopilotKit struct{ *nodeServer }

// StartCopilotKit starts the runtime with agents, given as pairs of a name and the URL of the run
// endpoint.
func StartCopilotKit(t *testing.T, agents ...string) CopilotKit {
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

// Run runs a thread with the client that CopilotKit ships.
func (c CopilotKit) Run(t *testing.T, thread string, runs ...ScriptedRun) (*ClientProcess, []clientLine) {
	t.Helper()
	d := Generation{Name: "v0"}.Drive(t, Shared, Script{URL: c.URL + "/agent/default/run", ThreadID: thread, Runs: runs})
	return d, d.Finish(t)
}

// Connect returns the messages that the runtime shows to a browser that connects later.
func (c CopilotKit) Connect(t *testing.T, thread string) []Message {
	t.Helper()
	d := Generation{Name: "v0"}.Drive(t, Shared, Script{
		URL: c.URL + "/agent/default/connect", ThreadID: thread, Runs: []ScriptedRun{{RunID: "look"}},
	})
	return d.Finish(t)[0].Messages
}
