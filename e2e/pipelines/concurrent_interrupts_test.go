package pipelines

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

// quartetAgents is an agent with three branches that ask for approval and a fourth that calls a
// slow tool.
const quartetAgents = `name: quartet
model: openai/scripted-by-the-test
tools: [calculate, hold_on]
steps:
  - name: all
    parallel:
      - {name: one, steps: [{name: ask_one, approve: {message: "One?", args: {n: 1}}}, {name: do_one, tool: calculate, args: {expression: "100+${steps.ask_one.args.n}"}}]}
      - {name: two, steps: [{name: ask_two, approve: {message: "Two?", args: {n: 2}}}, {name: do_two, tool: calculate, args: {expression: "200+${steps.ask_two.args.n}"}}]}
      - {name: three, steps: [{name: ask_three, approve: {message: "Three?", args: {n: 3}}}, {name: do_three, tool: calculate, args: {expression: "300+${steps.ask_three.args.n}"}}]}
      - {name: four, tool: hold_on, args: {for: "${input.text}"}}
  - name: sum
    tool: calculate
    args: {expression: "${steps.do_one}+${steps.do_two}+${steps.do_three}"}
---
name: nested
model: openai/scripted-by-the-test
tools: [calculate, hold_on]
steps:
  - name: all
    parallel:
      - name: left
        steps:
          - name: pair
            parallel:
              - {name: one, steps: [{name: ask_one, approve: {message: "One?", args: {n: 1}}}, {name: do_one, tool: calculate, args: {expression: "100+${steps.ask_one.args.n}"}}]}
              - {name: two, steps: [{name: ask_two, approve: {message: "Two?", args: {n: 2}}}, {name: do_two, tool: calculate, args: {expression: "200+${steps.ask_two.args.n}"}}]}
              - {name: four, tool: hold_on, args: {for: "${input.text}"}}
      - name: list
        map:
          items: "[3]"
          steps: [{name: ask_three, approve: {message: "Three?", args: {n: "${item}"}}}, {name: do_three, tool: calculate, args: {expression: "300+${steps.ask_three.args.n}"}}]
  - name: sum
    tool: calculate
    args: {expression: "${steps.do_one}+${steps.do_two}+${steps.list[0].do_three}"}
---
name: handed
model: openai/scripted-by-the-test
tools: [calculate, hold_on]
steps:
  - name: all
    parallel:
      - {name: one, agent: first}
      - name: pair
        parallel:
          - {name: two, agent: second}
          - {name: four, tool: hold_on, args: {for: "${input.text}"}}
      - {name: three, agent: third}
  - {name: sum, tool: calculate, args: {expression: "101+250+303"}}
---
name: errands
model: scripted/errands
tools: ["agent:first", "agent:second", "agent:third", hold_on]
---
kind: script
name: errands
turns:
  - when: (?P<all>(?s).*)
    steps:
      - calls: [{tool: first, arguments: {task: one}}, {tool: second, arguments: {task: two}}, {tool: third, arguments: {task: three}}, {tool: hold_on, arguments: {for: "{all}"}}]
      - say: "654"
---
name: first
model: openai/scripted-by-the-test
tools: [calculate]
steps: [{name: ask_one, approve: {message: "One?", args: {n: 1}}}, {name: do_one, tool: calculate, args: {expression: "100+${steps.ask_one.args.n}"}}]
---
name: second
model: openai/scripted-by-the-test
tools: [calculate]
steps: [{name: ask_two, approve: {message: "Two?", args: {n: 2}}}, {name: do_two, tool: calculate, args: {expression: "200+${steps.ask_two.args.n}"}}]
---
name: third
model: openai/scripted-by-the-test
tools: [calculate]
steps: [{name: ask_three, approve: {message: "Three?", args: {n: 3}}}, {name: do_three, tool: calculate, args: {expression: "300+${steps.ask_three.args.n}"}}]
---
kind: tool
name: hold_on
description: Waits.
parameters: {type: object, required: [for], properties: {for: {type: string}}}
http: {method: POST, url: "%s/wait", timeout: 2m}
idempotent: true
`

// callHolder is a tool server that holds each call until its gate is closed.
type callHolder struct {
	mu   sync.Mutex
	open map[string]chan struct{}
}

// gate returns the channel that holds the calls of a branch.
func (d *callHolder) gate(who string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[who] == nil {
		d.open[who] = make(chan struct{})
	}
	return d.open[who]
}

func (d *callHolder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, who, _ := strings.Cut(string(body), `"for":"`)
	who, _, _ = strings.Cut(who, `"`)
	select {
	case <-d.gate(who):
		_, _ = io.WriteString(w, "{}")
	case <-r.Context().Done():
	}
}

// quartet is a run of that agent whose branches wait for approvals.
type quartet struct {
	p             *kit.Perdure
	in            kit.Input
	f             *kit.Follower
	questions     []kit.Interrupt // in the order of the branches
	releaseFourth func()          // ends the tool call of the fourth branch
}

// startQuartet starts a run with four branches that raise interrupts.
func startQuartet(t *testing.T, p *kit.Perdure, d *callHolder, hold bool) *quartet {
	t.Helper()
	return startQuartetOf(t, p, d, "quartet", hold)
}

// startQuartetOf is like startQuartet, with another agent.
func startQuartetOf(t *testing.T, p *kit.Perdure, d *callHolder, agent string, hold bool) *quartet {
	t.Helper()
	q := &quartet{p: p, in: kit.NewInput(kit.Marked("this."))}
	if hold {
		q.in = q.in.Hold()
	}
	gate := d.gate(q.in.Messages[0].Content)
	q.releaseFourth = func() { close(gate) }
	q.f = p.FollowAgent(t, "/v1/agents/"+agent+"/runs", q.in)
	for range 3 {
		q.questions = append(q.questions, kit.CustomValue[kit.Interrupt](t, q.f.Until(t, kit.IsCustom), "perdure.approval"))
	}
	slices.SortFunc(q.questions, func(a, b kit.Interrupt) int {
		return slices.Index(quartetQuestions, a.Message) - slices.Index(quartetQuestions, b.Message)
	})
	return q
}

var quartetQuestions = []string{"One?", "Two?", "Three?"}

// quartetDecisions are the decisions about the questions, with the calculations that they lead to.
// The second edits the arguments.
var quartetDecisions = []struct{ body, want string }{
	{`{"decision":"approve"}`, "101"},
	{`{"decision":"edit","args":{"n":50}}`, "250"},
	{`{"decision":"approve"}`, "303"},
}

// answer decides about one question and waits until its branch has continued.
func (q *quartet) answer(t *testing.T, i int) {
	t.Helper()
	q.decide(t, i, http.StatusOK)
	q.f.Until(t, func(e kit.Event) bool {
		return e.Type == "TOOL_CALL_RESULT" && e.Member("content") == quartetDecisions[i].want
	})
}

// decide approves the i-th interrupt.
func (q *quartet) decide(t *testing.T, i, status int) map[string]any {
	t.Helper()
	got, a := kit.Decide(t, q.p.Endpoint, q.in.ThreadID, q.questions[i].ID, quartetDecisions[i].body)
	if got != status {
		t.Fatalf("question %d: %d %v, want %d", i, got, a, status)
	}
	return a
}

// wantEnd checks the end of the run.
func (q *quartet) wantEnd(t *testing.T, f *kit.Follower) {
	t.Helper()
	f.UntilSuccess(t)
	messages := kit.ShownMessages(t, q.in.Messages, f.Events, kit.RetractWarning)
	if last := messages[len(messages)-1]; last.Content != "654" {
		t.Errorf("last message of the client = %q, want %q", last.Content, "654")
	}
}

// setupQuartets starts a process for runs with four branches.
func setupQuartets(t *testing.T) (*kit.Perdure, *callHolder) {
	t.Helper()
	d := &callHolder{open: map[string]chan struct{}{}}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	return kit.SetupWith(t, fmt.Sprintf(quartetAgents, server.URL)), d
}

// TestBranchesContinueConcurrently: branches that wait for approval are approved in any order, and
// each continues while a sibling works. The run stays open.
func TestBranchesContinueConcurrently(t *testing.T) {
	t.Parallel()
	p, d := setupQuartets(t)
	t.Run("orders", func(t *testing.T) {
		for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			t.Run(fmt.Sprint(order), func(t *testing.T) {
				t.Parallel()
				q := startQuartet(t, p, d, order[0] == 1)
				for _, i := range order {
					q.answer(t, i)
				}
				if a := q.decide(t, order[0], http.StatusOK); a["repeated"] != true {
					t.Errorf("repeated decision: got %v, want a repeat", a)
				}
				if status, a := kit.Decide(t, p.Endpoint, q.in.ThreadID, q.questions[order[1]].ID, `{"decision":"reject"}`); status != http.StatusConflict {
					t.Errorf("opposite decision: got %d %v, want %d", status, a, http.StatusConflict)
				}
				q.releaseFourth()
				q.wantEnd(t, q.f)
			})
		}
	})
	t.Run("some", func(t *testing.T) { testUnansweredBranches(t, startQuartet(t, p, d, false)) })
	t.Run("held", func(t *testing.T) {
		q := startQuartet(t, p, d, true)
		q.answer(t, 1)
		q.releaseFourth()
		q.f.Until(t, func(e kit.Event) bool { return e.Type == "TOOL_CALL_RESULT" && e.Member("content") == "{}" })
		q.answer(t, 2)
		q.decide(t, 0, http.StatusOK)
		q.wantEnd(t, q.f)
	})
	t.Run("cancelled", func(t *testing.T) {
		q := startQuartet(t, p, d, false)
		q.answer(t, 1)
		p.AwaitPending(t, "?thread="+q.in.ThreadID, q.in.ThreadID, q.in.ThreadID)
		if status := p.Cancel(t, q.in); status != http.StatusAccepted {
			t.Fatalf("cancel: got %d, want %d", status, http.StatusAccepted)
		}
		q.f.Finish(t)
		kit.WantOutcome(t, q.f, "cancelled")
		q.decide(t, 0, http.StatusNotFound)
		p.AwaitPending(t, "?thread="+q.in.ThreadID) // the inbox is empty
	})
}

// TestSubagentsContinueConcurrently: nested branches and subagents, of a model or of a step,
// continue in the same way, also after their process was killed.
func TestSubagentsContinueConcurrently(t *testing.T) {
	t.Parallel()
	p, d := setupQuartets(t)
	for _, agent := range []string{"nested", "handed", "errands"} {
		t.Run(agent, func(t *testing.T) {
			t.Run("orders", func(t *testing.T) {
				for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
					t.Run(fmt.Sprint(order), func(t *testing.T) {
						t.Parallel()
						q := startQuartetOf(t, p, d, agent, order[0] == 1)
						for _, i := range order {
							q.answer(t, i)
						}
						q.releaseFourth()
						q.wantEnd(t, q.f)
					})
				}
			})
			t.Run("some", func(t *testing.T) { testUnansweredBranches(t, startQuartetOf(t, p, d, agent, false)) })
			t.Run("held", func(t *testing.T) {
				q := startQuartetOf(t, p, d, agent, true)
				q.answer(t, 1)
				q.releaseFourth()
				q.f.Until(t, func(e kit.Event) bool { return e.Type == "TOOL_CALL_RESULT" && e.Member("content") == "{}" })
				q.answer(t, 2)
				q.answer(t, 0)
				q.wantEnd(t, q.f)
			})
			t.Run("killed", func(t *testing.T) {
				q := startQuartetOf(t, p, d, agent, false)
				q.answer(t, 2)
				p.Kill()
				p.Start(t)
				q.answer(t, 1)
				p.Kill()
				p.Start(t)
				q.answer(t, 0)
				q.releaseFourth()
				q.wantEnd(t, q.f)
			})
			t.Run("cancelled", func(t *testing.T) {
				q := startQuartetOf(t, p, d, agent, false)
				q.answer(t, 1)
				if status := p.Cancel(t, q.in); status != http.StatusAccepted {
					t.Fatalf("cancel: got %d, want %d", status, http.StatusAccepted)
				}
				q.f.Finish(t)
				kit.WantOutcome(t, q.f, "cancelled")
				q.decide(t, 0, http.StatusNotFound)
				p.AwaitPending(t, "?thread="+q.in.ThreadID) // the inbox is empty
			})
		})
	}
}

// TestInterruptsOfCancelledBranchesEnd: a decision that arrives together with a cancel, or right
// before it, holds for a client that repeats it, if it was acknowledged. The call has a result in
// any case.
func TestInterruptsOfCancelledBranchesEnd(t *testing.T) {
	t.Parallel()
	p, d := setupQuartets(t)
	came := map[string]int{}
	for i := range raceCount() {
		q := startQuartet(t, p, d, false)
		approve := func() (a response) {
			a.status, a.answer = kit.Decide(t, p.Endpoint, q.in.ThreadID, q.questions[0].ID, quartetDecisions[0].body)
			return a
		}
		var first response
		if i%2 == 0 {
			concurrently(func() { first = approve() }, func() { p.Cancel(t, q.in) })
		} else {
			first = approve()
			p.Cancel(t, q.in)
		}
		q.f.Finish(t)
		kit.WantOutcome(t, q.f, "cancelled")
		if first.status != http.StatusOK && first.status != http.StatusNotFound {
			t.Errorf("approval = %v, want %d or %d", first, http.StatusOK, http.StatusNotFound)
		}
		first.wantSame(t, approve())
		closed := slices.ContainsFunc(q.f.Events, func(e kit.Event) bool {
			return e.Type == "TOOL_CALL_RESULT" && e.Member("toolCallId") == q.questions[0].ToolCallID
		})
		if !closed {
			t.Errorf("approval = %v, and the call has no result, want one", first)
		}
		came[first.String()]++
	}
	t.Logf("%v", came)
}

// testUnansweredBranches checks that the run ends with the questions that are open when all other
// branches are done, and that earlier decisions hold.
func testUnansweredBranches(t *testing.T, q *quartet) {
	q.answer(t, 1)
	q.releaseFourth()
	q.f.Finish(t)
	left := kit.InterruptsOf(t, q.f.Events)
	if len(left) != 2 || slices.ContainsFunc(left, func(i kit.Interrupt) bool { return i.ID == q.questions[1].ID }) {
		t.Fatalf("interrupts at the end = %+v, want the two others", left)
	}
	listed := q.p.AwaitPending(t, "?thread="+q.in.ThreadID, q.in.ThreadID, q.in.ThreadID).Items
	if len(listed) != 2 {
		t.Errorf("approvals of the inbox = %+v, want 2", listed)
	}
	q.decide(t, 2, http.StatusOK)
	q.decide(t, 0, http.StatusOK)
	q.wantEnd(t, q.p.FollowThread(t, q.in))
}

// TestInterruptsOfManyBranches: more branches ask than a run can end with. The run stays open until
// enough of them are answered, also over a kill, and ends with the rest.
func TestInterruptsOfManyBranches(t *testing.T) {
	t.Parallel()
	const twelve = `name: twelve
model: openai/scripted-by-the-test
tools: [calculate]
steps:
  - name: all
    map:
      items: "[1,2,3,4,5,6,7,8,9,10,11,12]"
      concurrency: 12
      steps: [{name: ask, approve: {message: "${string(item)}?"}}, {name: do, tool: calculate, args: {expression: "${string(item)}+100"}}]
  - {name: sum, tool: calculate, args: {expression: "${string(size(steps.all.filter(i, i.do > 100)))}"}}
`
	p := kit.SetupWith(t, twelve)
	in := kit.NewInput(kit.Marked("this."))
	f := p.FollowAgent(t, "/v1/agents/twelve/runs", in)
	var asked []string
	ask := func() {
		asked = append(asked, kit.CustomValue[kit.Interrupt](t, f.Until(t, kit.IsCustom), "perdure.approval").ID)
	}
	approve := func() {
		t.Helper()
		if status, a := kit.Decide(t, p.Endpoint, in.ThreadID, asked[0], `{"decision":"approve"}`); status != http.StatusOK {
			t.Fatalf("approve: got %d %v, want %d", status, a, http.StatusOK)
		}
		asked = asked[1:]
	}
	for range 8 { // the limit of concurrent questions
		ask()
	}
	p.Kill()
	p.Start(t)
	for range 4 {
		approve()
		ask()
	}
	for len(asked) > 1 {
		approve()
	}
	f.Finish(t)
	if left := kit.InterruptsOf(t, f.Events); len(left) == 0 || len(left) > 7 {
		t.Fatalf("interrupts at the end = %+v, want 1 to 7", left)
	}
	approve()
	g := p.FollowThread(t, in)
	g.UntilSuccess(t)
	messages := kit.ShownMessages(t, in.Messages, g.Events, kit.RetractWarning)
	if last := messages[len(messages)-1]; last.Content != "12" {
		t.Errorf("last message of the client = %q, want %q", last.Content, "12")
	}
}

// TestInterruptsOfBranchesSurviveCrash: the process is killed while branches ask. The questions
// stay open and the decisions hold.
func TestInterruptsOfBranchesSurviveCrash(t *testing.T) {
	t.Parallel()
	p, d := setupQuartets(t)
	q := startQuartet(t, p, d, false)
	q.answer(t, 2)
	p.Kill()
	p.Start(t)
	q.answer(t, 1)
	p.Kill()
	p.Start(t)
	q.answer(t, 0)
	q.releaseFourth()
	q.wantEnd(t, q.f)
}

// TestBranchesChangeStateExactlyOnce: branches update the same member of the state concurrently,
// also over a kill. No update is lost.
func TestBranchesChangeStateExactlyOnce(t *testing.T) {
	t.Parallel()
	p := kit.SetupWith(t, `name: counts
model: openai/scripted-by-the-test
tools: [calculate]
steps:
  - {name: begin, set: {/n: 0, /all: []}}
  - name: rows
    map:
      items: "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30]"
      concurrency: 10
      steps:
        - {name: count, set: {/n: "${state.n + 1}"}}
        - {name: square, tool: calculate, args: {expression: "${string(item)}*${string(item)}"}}
        - {name: add, set: {/n: "${state.n + 100}", /all/-: "${steps.square}"}}
`)
	in := kit.NewInput(kit.Marked("this."))
	f := p.FollowAgent(t, "/v1/agents/counts/runs", in)
	for range 2 {
		for range 8 {
			f.Until(t, func(e kit.Event) bool { return e.Type == "TOOL_CALL_RESULT" })
		}
		p.Kill()
		p.Start(t)
	}
	f.UntilSuccess(t)
	state := p.StateOf(t, in)
	if all, _ := state["all"].([]any); state["n"] != 3030.0 || len(all) != 30 {
		t.Errorf("final state = %v and %v, want 3030 and 30 items", state["n"], state["all"])
	}
}
