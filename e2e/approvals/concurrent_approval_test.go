package approvals

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/e2e/kit"
)

// tenCalls is the number of calls that wait in a round.
const tenCalls = 10

// TestTenApprovals: ten calls of a turn wait for approval, and two people decide them over REST
// concurrently, in different orders. They disagree on about every third call. Each call has one
// decision, which the later approver gets, and is made once as decided, or not at all. Every
// tenth round kills the process between two decisions. CHAOS_SEED chooses; with -chaos there are
// 200 rounds, or as many as E2E_APPROVALS.
func TestTenApprovals(t *testing.T) {
	t.Parallel()
	seed := kit.ChaosSeed(t)
	rounds, err := strconv.Atoi(os.Getenv("E2E_APPROVALS"))
	switch {
	case err == nil:
	case *kit.Chaos:
		rounds = 200
	default:
		rounds = 10
	}
	t.Logf("%d rounds", rounds)
	charges := kit.StartChargeServer(t)
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents = charges.Agents(t)
	p.InspectAtEnd(t)
	p.Start(t)
	var total tally
	for n := range rounds {
		q := &decisionRound{perdure: p, charges: charges, random: rand.New(rand.NewPCG(seed, uint64(n)))}
		q.start(t)
		q.decideAll(t, n%10 == 9, &total)
		q.verify(t, &total)
		if t.Failed() {
			t.Fatalf("round %d failed", n)
		}
	}
	t.Logf("%+v", total)
}

// tally counts the outcomes of all rounds.
type tally struct {
	Calls, Agreed, Contradicted, Repeated, Conflicts, Made, NotMade, Kills int
}

// decisionRound is one round: a turn whose calls wait, and two people.
type decisionRound struct {
	perdure   *kit.Perdure
	charges   *kit.ChargeServer
	random    *rand.Rand
	in        kit.Input
	done      string
	notes     []string
	questions []kit.Interrupt
	choices   [2][]choice
	answers   [2][]reply
}

// choice is a person's decision about a call.
type choice struct {
	Decision string `json:"decision"`
	Args     any    `json:"args,omitempty"`
	Content  string `json:"content,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// reply is the response to a decision.
type reply struct {
	status   int
	Code     string  `json:"code"`
	Decision string  `json:"decision"`
	Repeated bool    `json:"repeated"`
	Recorded *choice `json:"recorded"`
}

// start scripts the calls and runs the agent until it asks.
func (q *decisionRound) start(t *testing.T) {
	t.Helper()
	prompt, yes, no := kit.Marked("Charge all of them."), true, false
	q.done = kit.Marked("Charged.")
	var calls []kit.ModelCall
	for i := range tenCalls {
		q.notes = append(q.notes, kit.Marked(fmt.Sprint(i)))
		calls = append(calls, kit.ModelCall{Name: "charge", Arguments: fmt.Sprintf(`{"note":%q,"amount":%d}`, q.notes[i], i)})
	}
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{ToolCalls: calls}},
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: q.done}})
	q.in = kit.NewInput(prompt)
	events := q.perdure.RunAgent(t, "/v1/agents/cashier/runs", q.in)
	asked := kit.InterruptsOf(t, events)
	for _, call := range kit.ShownMessages(t, q.in.Messages, events)[1].ToolCalls {
		at := slices.IndexFunc(asked, func(x kit.Interrupt) bool { return x.ToolCallID == call.ID })
		if at < 0 {
			t.Fatalf("interrupt of the call %+v: got none in %+v, want one", call, asked)
		}
		q.questions = append(q.questions, asked[at])
	}
	if len(q.questions) != tenCalls || len(asked) != tenCalls {
		t.Fatalf("interrupts = %+v, want %d", asked, tenCalls)
	}
	for i := range tenCalls {
		first := q.choiceOf(i, 0)
		second := first
		if q.random.IntN(3) == 0 {
			second = q.choiceOf(i, 1)
		}
		q.choices[0], q.choices[1] = append(q.choices[0], first), append(q.choices[1], second)
	}
}

// choiceOf returns a person's decision about a call. Both people may choose the same.
func (q *decisionRound) choiceOf(call, person int) choice {
	switch q.random.IntN(8) {
	case 0:
		return choice{Decision: "reject", Reason: kit.Marked("too dear")}
	case 1:
		return choice{Decision: "answer", Content: kit.Marked("paid in cash")}
	case 2, 3:
		return choice{Decision: "edit", Args: map[string]any{"note": q.notes[call], "amount": 1000*(person+1) + call}}
	}
	return choice{Decision: "approve"}
}

// decideAll makes both people decide all calls. With kill, the process is killed meanwhile, and
// both leave the same call for afterwards, so that no call is made before.
func (q *decisionRound) decideAll(t *testing.T, kill bool, total *tally) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	defer cancel()
	var answered atomic.Int64
	moment := int64(1 + q.random.IntN(tenCalls))
	reached, back := make(chan struct{}), make(chan struct{})
	if !kill {
		close(back)
	}
	left := q.random.IntN(tenCalls)
	var people errgroup.Group
	for person := range 2 {
		order := q.random.Perm(tenCalls)
		if kill {
			order = append(slices.DeleteFunc(order, func(i int) bool { return i == left }), left)
		}
		q.answers[person] = make([]reply, tenCalls)
		people.Go(func() (err error) {
			for i, at := range order {
				if i == tenCalls-1 {
					<-back
				}
				if q.answers[person][at], err = q.decide(ctx, at, q.choices[person][at]); err != nil {
					return err
				}
				if kill && answered.Add(1) == moment {
					close(reached)
				}
			}
			return nil
		})
	}
	if kill {
		<-reached
		q.perdure.Kill()
		q.perdure.Start(t)
		close(back)
		total.Kills++
	}
	if err := people.Wait(); err != nil {
		t.Fatal(err)
	}
}

// decide sends a decision until the API answers.
func (q *decisionRound) decide(ctx context.Context, at int, o choice) (reply, error) {
	for {
		if _, err := q.perdure.Addresses(ctx); err != nil {
			return reply{}, err
		}
		resp, err := q.perdure.Post(ctx, "/v1/threads/"+q.in.ThreadID+"/approvals/"+q.questions[at].ID, o)
		if err != nil {
			if ctx.Err() != nil {
				return reply{}, err
			}
			continue // killed or not ready yet
		}
		var r reply
		err = json.NewDecoder(resp.Body).Decode(&r)
		r.status = resp.StatusCode
		_ = resp.Body.Close()
		if err == nil && r.status != http.StatusServiceUnavailable {
			return r, nil
		}
	}
}

// verify compares the responses, the charges and the conversation.
func (q *decisionRound) verify(t *testing.T, total *tally) {
	t.Helper()
	f := q.perdure.FollowThread(t, q.in)
	f.UntilSuccess(t)
	f.Cut()
	results := map[string]string{}
	messages := kit.ShownMessages(t, nil, f.Events)
	for _, m := range messages {
		results[m.ToolCallID] = m.Content
	}
	if last := messages[len(messages)-1]; last.Content != q.done || len(messages) != 3+tenCalls {
		t.Errorf("thread: got %d messages, the last %+v, want %d with the answer", len(messages), last, 3+tenCalls)
	}
	for i, asked := range q.questions {
		stands, err := q.recordedChoice(i, total)
		if err == nil {
			err = q.checkExecution(i, stands, results[asked.ToolCallID], total)
		}
		if err != nil {
			t.Errorf("call %d, about which they decided %+v and %+v: %v", i, q.choices[0][i], q.choices[1][i], err)
		}
	}
}

// recordedChoice returns the decision that counts, and checks that both approvers got it.
func (q *decisionRound) recordedChoice(i int, total *tally) (choice, error) {
	a, b := q.answers[0][i], q.answers[1][i]
	total.Calls++
	if fmt.Sprint(q.choices[0][i]) == fmt.Sprint(q.choices[1][i]) {
		total.Agreed++
		if a.status != http.StatusOK || b.status != http.StatusOK || !a.Repeated && !b.Repeated {
			return choice{}, fmt.Errorf("approvers who agree: got the responses %+v and %+v", a, b)
		}
		total.Repeated++
		return q.choices[0][i], nil
	}
	total.Contradicted++
	winner, loser := 0, b
	if a.status != http.StatusOK {
		winner, a, loser = 1, b, a
	}
	stands := q.choices[winner][i]
	if a.status != http.StatusOK || a.Decision != stands.Decision {
		return choice{}, fmt.Errorf("neither decision was accepted: %+v and %+v", a, loser)
	}
	if loser.status != http.StatusConflict || loser.Code != "decided" || loser.Recorded == nil || loser.Recorded.Decision != stands.Decision {
		return choice{}, fmt.Errorf("the later decision got %+v", loser)
	}
	total.Conflicts++
	return stands, nil
}

// checkExecution compares the charges and the conversation with the decision about a call.
func (q *decisionRound) checkExecution(i int, stands choice, result string, total *tally) error {
	var want []int
	heard := "charged " + strconv.Itoa(i)
	switch stands.Decision {
	case "approve":
		want = []int{i}
	case "edit":
		amount := stands.Args.(map[string]any)["amount"].(int)
		want, heard = []int{amount}, "charged "+strconv.Itoa(amount)
	case "answer":
		heard = stands.Content
	case "reject":
		heard = stands.Reason
	}
	var got []int
	for _, c := range q.charges.Charges(q.notes[i]) {
		got = append(got, c.Amount)
	}
	if len(want) > 0 {
		total.Made++
	} else {
		total.NotMade++
	}
	if !slices.Equal(got, want) || !strings.Contains(result, heard) {
		return fmt.Errorf("recorded decision %+v; charged %v; the model received %q", stands, got, result)
	}
	return nil
}
