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

// besides is an agent with three questions beside one another, and a fourth branch that takes its
// time.
const besides = `name: quartet
model: openai/scripted-by-the-test
tools: [calculate, wait]
steps:
  - name: all
    parallel:
      - {name: one, steps: [{name: ask_one, approve: {message: "One?", args: {n: 1}}}, {name: do_one, tool: calculate, args: {expression: "100+${steps.ask_one.args.n}"}}]}
      - {name: two, steps: [{name: ask_two, approve: {message: "Two?", args: {n: 2}}}, {name: do_two, tool: calculate, args: {expression: "200+${steps.ask_two.args.n}"}}]}
      - {name: three, steps: [{name: ask_three, approve: {message: "Three?", args: {n: 3}}}, {name: do_three, tool: calculate, args: {expression: "300+${steps.ask_three.args.n}"}}]}
      - {name: four, tool: wait, args: {for: "${input.text}"}}
  - name: sum
    tool: calculate
    args: {expression: "${steps.do_one}+${steps.do_two}+${steps.do_three}"}
---
name: nested
model: openai/scripted-by-the-test
tools: [calculate, wait]
steps:
  - name: all
    parallel:
      - name: left
        steps:
          - name: pair
            parallel:
              - {name: one, steps: [{name: ask_one, approve: {message: "One?", args: {n: 1}}}, {name: do_one, tool: calculate, args: {expression: "100+${steps.ask_one.args.n}"}}]}
              - {name: two, steps: [{name: ask_two, approve: {message: "Two?", args: {n: 2}}}, {name: do_two, tool: calculate, args: {expression: "200+${steps.ask_two.args.n}"}}]}
              - {name: four, tool: wait, args: {for: "${input.text}"}}
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
tools: [calculate, wait]
steps:
  - name: all
    parallel:
      - {name: one, agent: first}
      - name: pair
        parallel:
          - {name: two, agent: second}
          - {name: four, tool: wait, args: {for: "${input.text}"}}
      - {name: three, agent: third}
  - {name: sum, tool: calculate, args: {expression: "101+250+303"}}
---
name: errands
model: scripted/errands
tools: ["agent:first", "agent:second", "agent:third", wait]
---
kind: script
name: errands
turns:
  - when: (?P<all>(?s).*)
    steps:
      - calls: [{tool: first, arguments: {task: one}}, {tool: second, arguments: {task: two}}, {tool: third, arguments: {task: three}}, {tool: wait, arguments: {for: "{all}"}}]
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
name: wait
description: Waits.
parameters: {type: object, required: [for], properties: {for: {type: string}}}
http: {method: POST, url: "%s/wait", timeout: 2m}
idempotent: true
`

// door keeps calls waiting, each until it is opened for it.
type door struct {
	mu   sync.Mutex
	open map[string]chan struct{}
}

func (d *door) of(who string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[who] == nil {
		d.open[who] = make(chan struct{})
	}
	return d.open[who]
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, who, _ := strings.Cut(string(body), `"for":"`)
	who, _, _ = strings.Cut(who, `"`)
	select {
	case <-d.of(who):
		_, _ = io.WriteString(w, "{}")
	case <-r.Context().Done():
	}
}

// quartet is a run of that agent whose branches have asked.
type quartet struct {
	p         *kit.Perdure
	in        kit.Input
	f         *kit.Follower
	questions []kit.Interrupt // of the branches in their order
	open      func()          // ends the fourth
}

func newQuartet(t *testing.T, p *kit.Perdure, d *door, hold bool) *quartet {
	t.Helper()
	return newQuartetOf(t, p, d, "quartet", hold)
}

// newQuartetOf has the same done by another agent.
func newQuartetOf(t *testing.T, p *kit.Perdure, d *door, agent string, hold bool) *quartet {
	t.Helper()
	q := &quartet{p: p, in: kit.NewInput(kit.Say("this."))}
	if hold {
		q.in = q.in.Held()
	}
	gate := d.of(q.in.Messages[0].Content)
	q.open = func() { close(gate) }
	q.f = p.FollowAgent(t, "/v1/agents/"+agent+"/runs", q.in)
	for range 3 {
		q.questions = append(q.questions, kit.Custom[kit.Interrupt](t, q.f.Until(t, kit.IsCustom), "perdure.approval"))
	}
	slices.SortFunc(q.questions, func(a, b kit.Interrupt) int {
		return slices.Index(besidesAsk, a.Message) - slices.Index(besidesAsk, b.Message)
	})
	return q
}

var besidesAsk = []string{"One?", "Two?", "Three?"}

// answers are what approvals have the branches call with; the second is edited.
var besidesAnswers = []struct{ body, comesTo string }{
	{`{"decision":"approve"}`, "101"},
	{`{"decision":"edit","args":{"n":50}}`, "250"},
	{`{"decision":"approve"}`, "303"},
}

// answer answers one of the questions, and waits until its branch has gone on.
func (q *quartet) answer(t *testing.T, i int) {
	t.Helper()
	q.decide(t, i, http.StatusOK)
	q.f.Until(t, func(e kit.Event) bool {
		return e.Type == "TOOL_CALL_RESULT" && e.Member("content") == besidesAnswers[i].comesTo
	})
}

func (q *quartet) decide(t *testing.T, i, status int) map[string]any {
	t.Helper()
	got, a := kit.Decide(t, q.p.Endpoint, q.in.ThreadID, q.questions[i].ID, besidesAnswers[i].body)
	if got != status {
		t.Fatalf("question %d: %d %v, want %d", i, got, a, status)
	}
	return a
}

// ends expects the end of it all.
func (q *quartet) ends(t *testing.T, f *kit.Follower) {
	t.Helper()
	f.UntilSuccess(t)
	messages := kit.Show(t, q.in.Messages, f.Events, kit.Withdrawn)
	if last := messages[len(messages)-1]; last.Content != "654" {
		t.Errorf("at the end the client has %+v", last)
	}
}

func startQuartets(t *testing.T) (*kit.Perdure, *door) {
	t.Helper()
	d := &door{open: map[string]chan struct{}{}}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	return kit.SetupWith(t, fmt.Sprintf(besides, server.URL)), d
}

// Branches that ask are answered in any order, and go on, while a sibling is at work; nothing of it
// ends the run.
func TestBranchesContinueConcurrently(t *testing.T) {
	t.Parallel()
	p, d := startQuartets(t)
	t.Run("orders", func(t *testing.T) {
		for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			t.Run(fmt.Sprint(order), func(t *testing.T) {
				t.Parallel()
				q := newQuartet(t, p, d, order[0] == 1)
				for _, i := range order {
					q.answer(t, i)
				}
				if a := q.decide(t, order[0], http.StatusOK); a["repeated"] != true {
					t.Errorf("the same again is answered with %v", a)
				}
				if status, a := kit.Decide(t, p.Endpoint, q.in.ThreadID, q.questions[order[1]].ID, `{"decision":"reject"}`); status != http.StatusConflict {
					t.Errorf("the opposite is answered with %d %v", status, a)
				}
				q.open()
				q.ends(t, q.f)
			})
		}
	})
	t.Run("some", func(t *testing.T) { testBranchesLeft(t, newQuartet(t, p, d, false)) })
	t.Run("held", func(t *testing.T) {
		q := newQuartet(t, p, d, true)
		q.answer(t, 1)
		q.open()
		q.f.Until(t, func(e kit.Event) bool { return e.Type == "TOOL_CALL_RESULT" && e.Member("content") == "{}" })
		q.answer(t, 2)
		q.decide(t, 0, http.StatusOK)
		q.ends(t, q.f)
	})
	t.Run("cancelled", func(t *testing.T) {
		q := newQuartet(t, p, d, false)
		q.answer(t, 1)
		p.Pending(t, "?thread="+q.in.ThreadID, q.in.ThreadID, q.in.ThreadID)
		if status := p.Cancel(t, q.in); status != http.StatusAccepted {
			t.Fatalf("cancel: %d", status)
		}
		q.f.Finish(t)
		kit.WantOutcome(t, q.f, "cancelled")
		q.decide(t, 0, http.StatusNotFound)
		p.Pending(t, "?thread="+q.in.ThreadID) // nobody is asked any more
	})
}

// So do those below them, and agents that work for a call of a model or of a step, however deep;
// also over the death of their process.
func TestSubagentsContinueConcurrently(t *testing.T) {
	t.Parallel()
	p, d := startQuartets(t)
	for _, agent := range []string{"nested", "handed", "errands"} {
		t.Run(agent, func(t *testing.T) {
			t.Run("orders", func(t *testing.T) {
				for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
					t.Run(fmt.Sprint(order), func(t *testing.T) {
						t.Parallel()
						q := newQuartetOf(t, p, d, agent, order[0] == 1)
						for _, i := range order {
							q.answer(t, i)
						}
						q.open()
						q.ends(t, q.f)
					})
				}
			})
			t.Run("some", func(t *testing.T) { testBranchesLeft(t, newQuartetOf(t, p, d, agent, false)) })
			t.Run("held", func(t *testing.T) {
				q := newQuartetOf(t, p, d, agent, true)
				q.answer(t, 1)
				q.open()
				q.f.Until(t, func(e kit.Event) bool { return e.Type == "TOOL_CALL_RESULT" && e.Member("content") == "{}" })
				q.answer(t, 2)
				q.answer(t, 0)
				q.ends(t, q.f)
			})
			t.Run("killed", func(t *testing.T) {
				q := newQuartetOf(t, p, d, agent, false)
				q.answer(t, 2)
				p.Kill()
				p.Start(t)
				q.answer(t, 1)
				p.Kill()
				p.Start(t)
				q.answer(t, 0)
				q.open()
				q.ends(t, q.f)
			})
			t.Run("cancelled", func(t *testing.T) {
				q := newQuartetOf(t, p, d, agent, false)
				q.answer(t, 1)
				if status := p.Cancel(t, q.in); status != http.StatusAccepted {
					t.Fatalf("cancel: %d", status)
				}
				q.f.Finish(t)
				kit.WantOutcome(t, q.f, "cancelled")
				q.decide(t, 0, http.StatusNotFound)
				p.Pending(t, "?thread="+q.in.ThreadID) // nobody is asked any more
			})
		})
	}
}

// An answer to a branch of a run that is cancelled in the same moment, or in the next, stands if it
// was acknowledged, in the conversation and for whoever says it again.
func TestBranchesOfACancelledRunAreAnswered(t *testing.T) {
	t.Parallel()
	p, d := startQuartets(t)
	came := map[string]int{}
	for i := range contests() {
		q := newQuartet(t, p, d, false)
		approve := func() (a told) {
			a.status, a.answer = kit.Decide(t, p.Endpoint, q.in.ThreadID, q.questions[0].ID, besidesAnswers[0].body)
			return a
		}
		var first told
		if i%2 == 0 {
			together(func() { first = approve() }, func() { p.Cancel(t, q.in) })
		} else {
			first = approve()
			p.Cancel(t, q.in)
		}
		q.f.Finish(t)
		kit.WantOutcome(t, q.f, "cancelled")
		if first.status != http.StatusOK && first.status != http.StatusNotFound {
			t.Errorf("the approval: %v", first)
		}
		first.wantSame(t, approve())
		stands := slices.ContainsFunc(q.f.Events, func(e kit.Event) bool {
			return e.Type == "TOOL_CALL_RESULT" && e.Member("toolCallId") == q.questions[0].ToolCallID
		})
		if stands != (first.status == http.StatusOK) {
			t.Errorf("the approval: %v; there is a result: %t", first, stands)
		}
		came[first.String()]++
	}
	t.Logf("%v", came)
}

// What is not answered when the others are done is what the run ends with; the answers that came
// before count.
func testBranchesLeft(t *testing.T, q *quartet) {
	q.answer(t, 1)
	q.open()
	q.f.Finish(t)
	left := kit.InterruptsOf(t, q.f.Events)
	if len(left) != 2 || slices.ContainsFunc(left, func(i kit.Interrupt) bool { return i.ID == q.questions[1].ID }) {
		t.Fatalf("the run ends with %+v", left)
	}
	listed := q.p.Pending(t, "?thread="+q.in.ThreadID, q.in.ThreadID, q.in.ThreadID).Items
	if len(listed) != 2 {
		t.Errorf("the inbox has %+v", listed)
	}
	q.decide(t, 2, http.StatusOK)
	q.decide(t, 0, http.StatusOK)
	q.ends(t, q.p.FollowThread(t, q.in))
}

// Branches ask more than a run can end with: it stays open until enough of that is answered, also
// over the death of its process, and ends with the rest.
func TestManyBranchesAsk(t *testing.T) {
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
	in := kit.NewInput(kit.Say("this."))
	f := p.FollowAgent(t, "/v1/agents/twelve/runs", in)
	var asked []string
	ask := func() {
		asked = append(asked, kit.Custom[kit.Interrupt](t, f.Until(t, kit.IsCustom), "perdure.approval").ID)
	}
	approve := func() {
		t.Helper()
		if status, a := kit.Decide(t, p.Endpoint, in.ThreadID, asked[0], `{"decision":"approve"}`); status != http.StatusOK {
			t.Fatalf("%d %v", status, a)
		}
		asked = asked[1:]
	}
	for range 8 { // no more ask at a time
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
		t.Fatalf("the run ends with %+v", left)
	}
	approve()
	g := p.FollowThread(t, in)
	g.UntilSuccess(t)
	messages := kit.Show(t, in.Messages, g.Events, kit.Withdrawn)
	if last := messages[len(messages)-1]; last.Content != "12" {
		t.Errorf("at the end the client has %+v", last)
	}
}

// The process is killed while branches ask: they ask still, and what was answered stays answered.
func TestBranchesAskOverACrash(t *testing.T) {
	t.Parallel()
	p, d := startQuartets(t)
	q := newQuartet(t, p, d, false)
	q.answer(t, 2)
	p.Kill()
	p.Start(t)
	q.answer(t, 1)
	p.Kill()
	p.Start(t)
	q.answer(t, 0)
	q.open()
	q.ends(t, q.f)
}

// Branches count in the same place of the state, and none of the counts is lost, also over the
// death of their process.
func TestBranchesCount(t *testing.T) {
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
	in := kit.NewInput(kit.Say("this."))
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
		t.Errorf("the state comes to %v and %v", state["n"], state["all"])
	}
}
