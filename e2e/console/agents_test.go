package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

const writerAgent = `name: console-writer
description: Writes letters.
model: scripted/console-writer
tools: [calculate, "agent:console-missing"]
instructions: Write in few words.
`

// publish publishes a definition, and returns its revision.
func publish(t *testing.T, name, definition string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, kit.Shared.URL("/v1/agents/"+name), strings.NewReader(definition))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode > http.StatusCreated {
		t.Fatalf("publish %s: %s", name, resp.Status)
	}
	return strings.Trim(resp.Header.Get("ETag"), `"`)
}

// paste replaces the text of an editor.
func paste(tab *kit.Tab, editor, text string) {
	tab.Click(editor)
	pasteHere(tab, text)
}

// pasteHere replaces the text of the editor that has the focus.
func pasteHere(tab *kit.Tab, text string) {
	tab.Press("Control+a")
	data, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can always be encoded
	}
	tab.Evaluate(`{
		const clipboardData = new DataTransfer();
		clipboardData.setData("text/plain", `+string(data)+`);
		document.activeElement.dispatchEvent(new ClipboardEvent("paste", {clipboardData, bubbles: true, cancelable: true}));
	}`, nil)
}

// TestAgents: a user finds an agent, changes its definition with the help of marks at mistakes, and
// keeps the changed text after a reload and after a publication of another user. The publication
// has a note. Revisions are compared side by side, and an old one is restored.
func TestAgents(t *testing.T) {
	t.Parallel()
	first := publish(t, "console-writer", writerAgent)
	tab := kit.OpenTab(t, kit.Shared.URL("/console/agents?q=console-writer"))
	tab.Await("table[aria-label=Agents] tr:has-text('console-writer')", "agent:console-missing unavailable")
	tab.WantAccessible()
	tab.WantAria("main", "agents", first[:8], "REVISION")
	tab.Click("table >> text=console-writer")
	tab.Await("[role=note]", "A tool is unavailable")
	tab.WantAccessible()

	tab.Press("e")
	const editor, mistakes = ".cm-content[aria-readonly=false]", "section[aria-labelledby=mistakes] li"
	tab.Await(editor+":focus", "Write in few words.")
	paste(tab, editor, strings.Replace(writerAgent, "instructions:", "instruction:", 1))
	tab.Await(mistakes, "line 5")
	tab.Await(".cm-lintRange-error", "instruction")
	tab.Await("role=button[name='Publish …'][disabled=true]", "")
	tab.WantAccessible()
	changed := strings.Replace(writerAgent, "few words", "plain words", 1)
	paste(tab, editor, changed)
	tab.Await("main", "No mistakes")
	tab.Click("role=button[name='Try draft']")
	tab.Await("main", "Messages of this page run the revision")
	tab.Evaluate("history.back()", nil)
	tab.Await(editor, "plain words")
	tab.Reload()
	tab.Await(editor, "plain words")

	second := publish(t, "console-writer", strings.Replace(writerAgent, "letters", "short letters", 1))
	tab.Await("[role=note]", "Your text is kept")
	tab.Click("role=button[name='Publish …']")
	tab.Await("[role=dialog] >> .cm-mergeView", "short letters")
	tab.Await("[role=dialog] >> [role=alert]", "Somebody has published another revision")
	tab.WantAccessible()
	tab.Click("text=I have compared")
	tab.Type("role=textbox[name=Note]", "Plain words are enough")
	tab.Click("[role=dialog] >> button:text-is('Publish')")
	tab.AwaitGone("[role=dialog]")
	tab.Await(".cm-content[aria-readonly=true]", "plain words")

	tab.Click("nav[aria-label='Agent console-writer'] >> text=Revisions")
	tab.Await("ol[aria-label=Revisions] li:first-child", "Plain words are enough")
	tab.Await(".cm-mergeView .cm-merge-b .cm-changedLine", "plain words")
	tab.WantAccessible()
	tab.Click("role=radio[name='Compare from " + first[:8] + "']")
	tab.Click("role=radio[name='Compare to " + second[:8] + "']")
	tab.Await(".cm-mergeView .cm-merge-b .cm-changedLine", "Writes short letters.")
	tab.Click("role=button[name='Restore " + first[:8] + "']")
	tab.Await("[role=dialog] >> .cm-merge-b", "few words")
	tab.Click("[role=dialog] >> button:text-is('Publish')")
	tab.AwaitGone("[role=dialog]")
	tab.Await("ol[aria-label=Revisions] li:first-child", "Restore "+first[:8])
	tab.Await("ol[aria-label=Revisions] li:last-child", "published again above")
	tab.AwaitGone("role=button[name='Restore " + first[:8] + "']")
	var current struct{ Revision string }
	if kit.Shared.GetJSON(t, "/v1/agents/console-writer", &current); current.Revision != first {
		t.Errorf("current revision: got %s, want the restored %s", current.Revision, first)
	}
	tab.AwaitGone("ol[aria-label=Revisions] li:last-child input[type=radio]") // the revision is that of the first entry
	tab.AwaitGone("role=button[name='Restore " + first[:8] + "']")
	tab.Resize(390, 800)
	tab.WantAccessible()
	tab.Press("e") // again: the page has the editor by now
	tab.Await(editor+":focus", "few words")
}

const surveyAgent = `name: console-survey
model: scripted/console-survey
tools: [calculate]
steps:
  - name: squares
    map:
      items: "[1, 2, 3]"
      as: n
      steps:
        - {name: square, tool: calculate, args: {expression: "${n} * ${n}"}}
        - {name: confirm, when: n == 2, approve: {message: "Is ${steps.square} right?"}}
  - name: rounds
    loop: {max: 3, until: round == 2, steps: [{name: again, tool: calculate, args: {expression: "${round} + 1"}}]}
  - name: way
    route:
      - {when: steps.again > 100, steps: [{name: large, set: {/large: true}}]}
      - {steps: [{name: small, set: {/small: true}}]}
  - name: charged
    tool: calculate
    args: {expression: "1 + 1"}
    compensate: {tool: calculate, args: {expression: "1 - 1"}}
  - {name: broken, tool: calculate, args: {expression: "1 / 0"}}
`

// TestPipelineGraph: the graph of a run follows the run: a map is one node with the counts of its
// items, and opens to them. After the decision of the approval in an item the run continues, fails,
// and compensates. Steps lead to their spans, and screen readers have the steps as a list.
func TestPipelineGraph(t *testing.T) {
	t.Parallel()
	publish(t, "console-survey", surveyAgent)
	tab := kit.OpenTab(t, kit.Shared.URL("/console/agents/console-survey/graph"))
	tab.Await(".react-flow", "steps.again > 100")
	tab.WantAccessible()

	in := kit.NewInput("go").Hold()
	follower := kit.Shared.FollowAgent(t, "/v1/agents/console-survey/runs", in)
	question := kit.CustomValue[kit.Interrupt](t, follower.Until(t, kit.IsCustom), "perdure.approval")
	tab = kit.OpenTab(t, kit.Shared.URL("/console/threads/"+in.ThreadID+"/runs/"+in.RunID+"?tab=graph"))
	tab.Await("button[data-step]:has-text('squares')", "2 finished")
	tab.Await("button[data-step]:has-text('squares')", "1 waiting")
	tab.Click("role=button[name='Open squares']")
	tab.Await("button[data-step]:has-text('confirm')", "waiting")
	tab.WantAccessible()
	tab.Click("role=button[name='Item 0, finished']")
	tab.Await("button[data-step]:has-text('square') >> nth=1", "finished")

	if status, answer := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, question.ID, `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatalf("approval: got %d %s, want %d", status, answer, http.StatusOK)
	}
	follower.Finish(t)
	tab.Await("button[data-step]:has-text('undo charged')", "finished")
	tab.Await("button[data-step]:has-text('rounds')", "round 2 of at most 3")
	tab.Await("button[data-step]:has-text('broken')", "failed")
	tab.Await("[data-status=skipped]", "large")
	tab.WantAria("section[aria-label^='Steps of'] > .visually-hidden", "pipeline_steps")
	tab.Click("button[data-step]:has-text('charged')")
	tab.Press("ArrowDown")
	tab.Press("Enter")
	tab.Await("button[data-step][aria-pressed=true]", "")
	var span string
	if tab.Evaluate("new URLSearchParams(location.search).get('span') ?? ''", &span); span == "" {
		t.Error("a step does not select its span")
	}
	tab.WantAccessible()
}
