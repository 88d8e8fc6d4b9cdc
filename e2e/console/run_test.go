package console

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// travelAgents are an agent whose model fails once and whose tool fails twice, its subagent, a
// pipeline that fails and compensates, one whose tool is unavailable, and an agent with a long
// answer. %[1]s is the tools' server, %[2]s the answer.
const travelAgents = `name: travel
model: openai/scripted-by-the-test
tools: [weather, book, "agent:scout"]
approvals: [{tools: [book]}]
---
name: scout
description: Knows hotels.
model: scripted/scout
---
kind: script
name: scout
pace: 1ms
turns: [{steps: [{say: The Grand is good.}]}]
---
name: parcel
model: scripted/parcel
tools: [reserve, release, ship]
steps:
  - {name: reserved, tool: reserve, compensate: {tool: release}}
  - {name: shipped, tool: ship}
---
name: postman
model: scripted/parcel
tools: [stuck]
steps: [{name: deliver, tool: stuck}]
---
name: novelist
model: scripted/novelist
---
kind: script
name: novelist
pace: 0s
turns: [{steps: [{say: "%[2]s"}]}]
---
kind: script
name: parcel
turns: [{steps: [{say: unused}]}]
---
{kind: tool, name: weather, description: Weather., idempotent: true, parameters: {type: object, properties: {city: {type: string}}}, http: {method: POST, url: "%[1]s/weather"}}
---
{kind: tool, name: book, description: Books., idempotent: true, parameters: {type: object, properties: {hotel: {type: string}}}, http: {method: POST, url: "%[1]s/book"}}
---
{kind: tool, name: reserve, description: Reserves., idempotent: true, http: {method: POST, url: "%[1]s/reserve"}}
---
{kind: tool, name: release, description: Releases., idempotent: true, http: {method: POST, url: "%[1]s/release"}}
---
{kind: tool, name: stuck, description: Never answers., idempotent: true, http: {method: POST, url: "%[1]s/stuck"}}
---
{kind: tool, name: ship, description: Ships., idempotent: true, http: {method: POST, url: "%[1]s/ship"}}
`

// startTravelServer starts the server of the tools. The connection of each call of weather breaks
// twice, and no parcel can be shipped. The first call of stuck fails, and the next one has no end.
func startTravelServer(t *testing.T) string {
	t.Helper()
	var mu sync.Mutex
	requests := map[string]int{} // to weather by the key of the call, and to stuck
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch r.URL.Path {
		case "/weather":
			key := r.Header.Get("Idempotency-Key")
			if requests[key]++; requests[key] <= 2 {
				panic(http.ErrAbortHandler)
			}
		case "/stuck":
			if requests["/stuck"]++; requests["/stuck"] == 1 {
				http.Error(w, "closed for repairs", http.StatusServiceUnavailable)
				return
			}
			mu.Unlock()
			_, _ = io.Copy(io.Discard, r.Body) // a server sees the end of a connection after that
			<-r.Context().Done()               // the run is cancelled
			mu.Lock()
		case "/ship":
			http.Error(w, "no carrier serves Lisbon", http.StatusUnprocessableEntity)
			return
		}
		_, _ = w.Write([]byte(`{"done": true}`))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// eventsOfNovel is the number of words, and so about the number of events, of a long answer.
const eventsOfNovel = 10_000

// TestRun: a page tells what a run did: its spans as a tree that the keyboard selects, each attempt
// with its error and what it had said, the wait for an approval and the subagent. A run that failed
// tells the cause. A list of 10,000 events scrolls without a stutter, and threads are found by filters.
func TestRun(t *testing.T) {
	t.Parallel()
	p := kit.SetupWith(t, fmt.Sprintf(travelAgents, startTravelServer(t), strings.Repeat("word ", eventsOfNovel)))
	browser := kit.NewBrowser(t)
	prompt := "Plan " + kit.NewThread()
	trip, parcel, letter, novel := kit.NewInput(prompt), kit.NewInput("A lamp"), kit.NewInput("A letter"), kit.NewInput("Write a novel")
	call := func(id, name, args string) kit.ModelCall { return kit.ModelCall{ID: id, Name: name, Arguments: args} }
	kit.SharedModel.AnswerInOrder(t, prompt,
		kit.Fixture{Response: kit.Response{Content: "I begin with the wrong hotel, which nobody may see later."}, ChunkSize: 10, Latency: 60, TruncateAfterChunks: 4},
		kit.Fixture{Response: kit.Response{ToolCalls: []kit.ModelCall{call("call_1", "weather", `{"city":"Lisbon"}`)}}},
		kit.Fixture{Response: kit.Response{ToolCalls: []kit.ModelCall{call("call_2", "scout", `{"task":"hotels"}`)}}},
		kit.Fixture{Response: kit.Response{ToolCalls: []kit.ModelCall{call("call_3", "book", `{"hotel":"Grand"}`)}}},
		kit.Fixture{Response: kit.Response{Content: "It is booked."}})
	p.PostAgent(t, "/v1/agents/travel/runs", trip)
	p.PostAgent(t, "/v1/agents/parcel/runs", parcel)
	p.PostAgent(t, "/v1/agents/novelist/runs", novel)
	runPage := func(in kit.Input, query string) *kit.Tab {
		return browser.Open(p.URL("/console/threads/" + in.ThreadID + "/runs/" + in.RunID + query))
	}
	tab := runPage(trip, "")
	testTimeline(t, tab)
	testFailure(runPage(parcel, ""))
	p.FollowAgent(t, "/v1/agents/postman/runs", letter)
	testRetry(runPage(letter, ""))
	testEvents(t, runPage(novel, "?tab=events&each=on"))
	testThreads(t, browser.Open(p.URL("/console/threads")), trip.ThreadID)

	inbox := p.AwaitPending(t, "", trip.ThreadID)
	if status, _ := kit.Decide(t, p.Endpoint, trip.ThreadID, inbox.Items[0].ID, `{"decision":"approve"}`); status != http.StatusOK && status != http.StatusAccepted {
		t.Fatalf("approval: got %d", status)
	}
	tab.Await("h1 + [data-status]", "finished")
	tab.Click("text=the run after the decision")
	tab.Await("main", "Run 2 of 2, finished")
	tab.Await(rowWith("book tool call"), "finished")
}

// rowWith returns the selector of a row of the timeline.
func rowWith(text string) string { return fmt.Sprintf("[role=treegrid] [role=row]:has-text(%q)", text) }

// durations returns the texts of the timeline that differ between runs, each with what stands for it.
func durations(tab *kit.Tab) []string {
	var texts, pairs []string
	tab.Evaluate(`[...document.querySelectorAll("[role=treegrid] [role=gridcell]:nth-child(2)")].map((e) => e.textContent)`, &texts)
	slices.SortFunc(texts, func(a, b string) int { return len(b) - len(a) })
	for _, text := range texts {
		pairs = append(pairs, " "+text+"\"", " (duration)\"", "\""+text+"\"", "\"(duration)\"")
	}
	return pairs
}

// testTimeline reads the run that waits for an approval.
func testTimeline(t *testing.T, tab *kit.Tab) {
	t.Helper()
	tab.Await("h1 + [data-status=waiting]", "waiting")
	tab.Await("main", "for a decision about book")
	tab.Await(rowWith("weather"), "3 attempts")
	tab.Await(rowWith("scout subagent"), "finished")
	tab.Await(rowWith("book wait"), "waiting")
	tab.WantAria("[role=treegrid]", "run_timeline", durations(tab)...)

	tab.Evaluate("document.querySelector('[role=treegrid]').focus()", nil)
	tab.Press("Home", "ArrowDown", "ArrowDown") // the run, the first turn, its model call
	tab.Await("aside", "Said, and withdrawn")
	tab.Await("aside figure", "I begin with")
	tab.Await("aside", "What to do:")
	tab.WantAccessible()
	// The page writes the selection to the address after the last key of a sequence.
	var address string
	if tab.Evaluate(`new Promise((resolve) => {
		const end = performance.now() + 10_000;
		const look = () => (location.search.includes("span=") || performance.now() > end ? resolve(location.search) : requestAnimationFrame(look));
		look();
	})`, &address); !strings.Contains(address, "span=") {
		t.Errorf("the address %q does not have the selected span", address)
	}
	tab.Press("ArrowDown")
	tab.Await("aside h2", "weather")
	tab.Await("aside [aria-label=Attempts]", "tool_unavailable")
	tab.Await("aside [aria-label=Arguments]", "Lisbon")
	tab.Press("Home", "ArrowLeft")
	tab.AwaitGone(rowWith("weather"))
	tab.Press("ArrowRight", "w")
	tab.Await(rowWith("weather"), "")
	tab.AwaitGone(rowWith("book wait"))
	tab.Press("Enter", "Escape")
	tab.AwaitGone("aside")
	tab.Click("main >> text=Input and output")
	tab.Await("main", "Plan thread-")
	tab.Resize(1000, 760)
	tab.Click("main >> text=Timeline")
	tab.Click(rowWith("weather"))
	tab.Await("aside h2", "weather")
	var width int
	if tab.Evaluate("document.querySelector('[role=row] [role=gridcell]:last-child').offsetWidth", &width); width < 200 {
		t.Errorf("beside the details, the chart of a page of 1000 pixels is %d wide, want 200 at least", width)
	}
	tab.Resize(390, 800)
	tab.Click("main >> text=Timeline")
	tab.Await(rowWith("weather"), "")
	tab.WantAccessible()
}

// testFailure reads the run that failed: the page selects the call that caused it.
func testFailure(tab *kit.Tab) {
	tab.Await("h1 + [data-status=failed]", "failed")
	tab.Await("[aria-label='Why the run failed']", "no carrier serves Lisbon")
	tab.Await("[aria-label='Why the run failed']", "What to do:")
	tab.Await("aside h2", "ship")
	tab.Await("aside", "as told above")
	tab.AwaitGone("main section:has-text('no carrier serves Lisbon') ~ * :text('What to do:')")
	tab.Await(rowWith("undo reserved step"), "finished")
	tab.Await(rowWith("release tool call"), "finished")
	tab.WantAccessible()
	tab.Click("aside >> text=Show the events of this span")
	tab.Await("[role=grid]", "TOOL_CALL")
}

// testEvents scrolls through the events of the long answer, and reads one.
func testEvents(t *testing.T, tab *kit.Tab) {
	t.Helper()
	tab.Await("[role=grid]", "RUN_STARTED")
	tab.AwaitGone("main [role=status]:has-text('Loading')")
	var total string
	if tab.Evaluate("document.querySelector('main [role=status]').textContent", &total); !strings.HasPrefix(total, "10,0") {
		t.Errorf("got %q, want more than 10,000 events", total)
	}
	var frames struct {
		P95, Worst, Rows float64
	}
	tab.Evaluate(`(async () => {
		const grid = document.querySelector("[role=grid]"), times = [];
		const frame = () => new Promise(requestAnimationFrame);
		let last = await frame();
		for (let i = 0; i < 120; i++) {
			grid.scrollTop += 900;
			const now = await frame();
			times.push(now - last);
			last = now;
		}
		times.sort((a, b) => a - b);
		return {P95: times[113], Worst: times[119], Rows: grid.querySelectorAll("[role=row]").length};
	})()`, &frames)
	t.Logf("frames while scrolling through events: p95 %.0f ms, worst %.0f ms, %.0f rows in the document", frames.P95, frames.Worst, frames.Rows)
	if frames.P95 > 1000 || frames.Rows > 300 { // other tests share the processors
		t.Errorf("got frames of %.0f ms (p95) with %.0f rows, want at most 1 s and 300 rows", frames.P95, frames.Rows)
	}
	tab.Evaluate("document.querySelector('[role=grid]').focus()", nil)
	tab.Press("End", "ArrowUp")
	tab.Press("End")
	tab.Await("aside", "RUN_FINISHED")
	tab.WantAccessible()
	tab.Press("Home")
	tab.Await("aside", "RUN_STARTED")
	tab.Click("role=button[name='Whole texts']")
	tab.Await("[role=row]:has-text('TEXT_MESSAGE_CONTENT')", "×") // the whole answer is one row
	tab.Click("[role=row]:has-text('TEXT_MESSAGE_CONTENT')")
	tab.Await("aside", " events, of which this is the first cursor")
	tab.WantAccessible()
}

// testThreads finds threads by the filters, which are in the address.
func testThreads(t *testing.T, tab *kit.Tab, waiting string) {
	t.Helper()
	tab.Await("table", waiting)
	tab.Await("table", "novelist")
	tab.WantAccessible()
	tab.Click("role=button[name=/Status/]")
	tab.Click("role=option[name=Waiting]")
	tab.AwaitGone("table >> text=novelist")
	tab.Await("table [data-status=waiting]", "waiting")
	var address string
	if tab.Evaluate("location.search", &address); address != "?status=waiting" {
		t.Errorf("got the address %q, want the filter in it", address)
	}
	choose := func(status string) {
		t.Helper()
		tab.Click("role=button[name=/Status/]")
		tab.Click("role=option[name=" + status + "]")
	}
	choose("Failed")
	tab.Await("table [data-status=failed]", "failed")
	tab.Await("table", "parcel")
	tab.AwaitGone("table >> text=novelist")
	choose("Stuck")
	tab.Await("main", "No thread matches")
	tab.Click("text=Clear")
	tab.Await("table", "novelist")
	tab.Type("[placeholder='Min. cost']", "0.5") // the models have no price
	tab.Await("main", "No thread matches")
	tab.Click("text=Clear")
	tab.Await("table", "novelist")
	tab.Click("table >> role=link[name=/Last run.*Plan/]")
	tab.Await("[role=treegrid]", "weather")
}
