package console

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

const approvedAgent = `name: console-approved
model: scripted/console-approved
tools: [calculate]
steps:
  - {name: prepare, tool: calculate, args: {expression: "1+1"}}
  - {name: sign_off, approve: {message: "Publish?"}}
`

// TestWaitingRun: the page of a run that waits names the step and not its tool, and its times
// change each second, without changing anything else of the facts.
func TestWaitingRun(t *testing.T) {
	t.Parallel()
	publish(t, "console-approved", approvedAgent)
	in := kit.NewInput("go")
	kit.Shared.PostAgent(t, "/v1/agents/console-approved/runs", in)
	tab := kit.NewBrowser(t).OpenWithClock(kit.Shared.URL("/console/threads/" + in.ThreadID + "/runs/" + in.RunID))
	tab.Await("[data-kind=waiting]", "for a decision about sign_off")
	// Observed are the elements whose content changes in the facts and the notices.
	tab.Evaluate(`{
		window.observed = new Set();
		const observer = new MutationObserver((records) => records.forEach(({type, target}) => observed.add(type + " " + target.parentElement.tagName)));
		for (const place of [document.querySelector("main dl"), document.querySelector("[data-kind=waiting]").parentElement]) observer.observe(place, {subtree: true, childList: true, characterData: true});
	}`, nil)
	seconds := func() (seconds int) {
		var text string
		tab.Evaluate(`document.querySelector("[data-kind=waiting] time").textContent`, &text)
		seconds, err := strconv.Atoi(strings.SplitN(text, " ", 2)[0])
		if err != nil {
			return 0 // "now"
		}
		return seconds
	}
	before := seconds()
	for range 3 {
		tab.Forward(time.Second)
	}
	if after := seconds(); after < before+3 || after > before+20 {
		t.Errorf("3 seconds later the notice tells %d s, want 3 more than %d", after, before)
	}
	var observed []string
	if tab.Evaluate("[...observed]", &observed); len(observed) != 1 || observed[0] != "characterData TIME" {
		t.Errorf("a second changes %q, want the texts of times", observed)
	}
	if status, answer := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, kit.Shared.AwaitPending(t, "", in.ThreadID).Items[0].ID, `{"decision":"approve"}`); status != http.StatusOK && status != http.StatusAccepted {
		t.Fatalf("approval: got %d %s", status, answer)
	}
}

// TestTimeAxis: the labels of the time axis do not touch each other or the details of a span, at
// any width.
func TestTimeAxis(t *testing.T) {
	t.Parallel()
	publish(t, "console-axis", strings.Replace(surveyAgent, "console-survey", "console-axis", 1))
	in := kit.NewInput("go")
	kit.Shared.PostAgent(t, "/v1/agents/console-axis/runs", in)
	tab := kit.OpenTab(t, kit.Shared.URL("/console/threads/"+in.ThreadID+"/runs/"+in.RunID))
	tab.Click(rowWith("squares step"))
	tab.Await("aside h2", "squares")
	for _, width := range []int{1600, 1280, 1100, 1000, 800} {
		tab.Resize(width, 700)
		tab.Await("[role=columnheader][aria-label=Time] > span", "0 s")
		var overlaps []string
		// A change of the size reaches the axis with the next frames.
		tab.Evaluate(`new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => {
			const labels = [...document.querySelectorAll("[role=columnheader][aria-label=Time] > span")].filter((e) => e.textContent !== "");
			const ends = [...labels.slice(1), document.querySelector("aside")].map((e) => e.getBoundingClientRect().left);
			resolve(labels.filter((e, i) => e.getBoundingClientRect().right > ends[i]).map((e) => e.textContent));
		})))`, &overlaps)
		if len(overlaps) > 0 {
			t.Errorf("at %d pixels, the labels %q touch what follows", width, overlaps)
		}
	}
	kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, kit.Shared.AwaitPending(t, "", in.ThreadID).Items[0].ID, `{"decision":"approve"}`)
}

// manySteps returns a pipeline with more spans than a trace has.
func manySteps() string {
	definition := "name: console-many\nmodel: scripted/console-many\ntools: [calculate]\nsteps:\n"
	for loop := range 3 { // a tool call after each, because steps without a wait are bounded
		definition += fmt.Sprintf("  - name: loop%[1]d\n    loop: {max: 450, steps: [{name: a%[1]d, set: {/a: 1}}, {name: b%[1]d, set: {/b: 1}}, {name: c%[1]d, set: {/c: 1}}, {name: d%[1]d, set: {/d: 1}}]}\n"+
			"  - {name: call%[1]d, tool: calculate, args: {expression: \"1+1\"}}\n", loop)
	}
	return definition
}

// TestManySpans: the page of a run with 5,000 spans has the rows in view in the document, also
// after the keyboard has gone to the last one, and says that the trace is cut.
func TestManySpans(t *testing.T) {
	t.Parallel()
	publish(t, "console-many", manySteps())
	in := kit.NewInput("go")
	kit.Shared.FollowAgent(t, "/v1/agents/console-many/runs", in).UntilSuccess(t)
	tab := kit.OpenTab(t, kit.Shared.URL("/console/threads/"+in.ThreadID+"/runs/"+in.RunID))
	tab.Await("main", "The run has more spans than a trace")
	tab.Await("main", "5000 spans")
	const grid = "[role=treegrid]"
	wantFewRows := func(when string) {
		t.Helper()
		const most = 120
		var rows int
		if tab.Evaluate(`document.querySelectorAll("[role=treegrid] [role=row]").length`, &rows); rows > most || rows < 10 {
			t.Errorf("%s, the document has %d rows, want 10 to %d", when, rows, most)
		}
	}
	wantFewRows("at first")
	tab.Evaluate(`document.querySelector("[role=treegrid]").focus()`, nil)
	tab.Press("End")
	tab.Await(grid+" [role=row][aria-selected=true][aria-rowindex='5001']", "")
	wantFewRows("at the end")
	tab.Press("PageUp", "ArrowUp")
	tab.Await("aside h2[title^=loop]", "")
	tab.Press("/")
	tab.Write("call1")
	tab.Await(grid+" [role=row]", "call1")
	tab.Await("main", "of 5000 spans")
	tab.WantAccessible()
}
