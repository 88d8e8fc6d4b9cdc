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
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/e2e/kit"
)

// tenCalls is how many calls wait in a round.
const tenCalls = 10

// Ten calls of a turn wait, and two people decide about them over REST at the same time, each in an
// order of their own; about every third they disagree. Each call has one decision, which whoever
// came too late is told, and is made once, with exactly what was decided, or not at all. In every
// tenth round the process is killed between two answers. CHAOS_SEED chooses; with -chaos there are
// 200 rounds, or as many as E2E_APPROVALS says.
func TestTenApprovals(t *testing.T) {
	t.Parallel()
	seed, err := strconv.ParseUint(os.Getenv("CHAOS_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	rounds, err := strconv.Atoi(os.Getenv("E2E_APPROVALS"))
	switch {
	case err == nil:
	case *kit.Chaos:
		rounds = 200
	default:
		rounds = 10
	}
	t.Logf("CHAOS_SEED=%d, %d rounds", seed, rounds)
	till := kit.StartChargeServer(t)
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents = till.Folder(t)
	p.Keep(t)
	p.Start(t)
	var total tally
	for n := range rounds {
		q := &quarrel{perdure: p, till: till, random: rand.New(rand.NewPCG(seed, uint64(n)))}
		q.open(t)
		q.settle(t, n%10 == 9, &total)
		q.verify(t, &total)
		if t.Failed() {
			t.Fatalf("in round %d", n)
		}
	}
	t.Logf("%+v", total)
}

// tally counts what happened in all rounds.
type tally struct {
	Calls, Agreed, Contradicted, Repeated, Conflicts, Made, NotMade, Kills int
}

// quarrel is one round: a turn whose calls wait, and two people.
type quarrel struct {
	perdure   *kit.Perdure
	till      *kit.ChargeServer
	random    *rand.Rand
	in        kit.Input
	done      string
	notes     []string
	questions []kit.Interrupt
	opinions  [2][]opinion
	answers   [2][]reply
}

// opinion is what a person decides about a call.
type opinion struct {
	Decision string `json:"decision"`
	Args     any    `json:"args,omitempty"`
	Content  string `json:"content,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// reply is what a person is told.
type reply struct {
	status   int
	Code     string   `json:"code"`
	Decision string   `json:"decision"`
	Repeated bool     `json:"repeated"`
	Recorded *opinion `json:"recorded"`
}

// open has a model ask for the calls, and the thread ask about them.
func (q *quarrel) open(t *testing.T) {
	t.Helper()
	prompt, yes, no := kit.Say("Charge all of them."), true, false
	q.done = kit.Say("Charged.")
	var calls []kit.ModelCall
	for i := range tenCalls {
		q.notes = append(q.notes, kit.Say(fmt.Sprint(i)))
		calls = append(calls, kit.ModelCall{Name: "charge", Arguments: fmt.Sprintf(`{"note":%q,"amount":%d}`, q.notes[i], i)})
	}
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{ToolCalls: calls}},
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: q.done}})
	q.in = kit.NewInput(prompt)
	events := q.perdure.RunAgent(t, "/v1/agents/cashier/runs", q.in)
	asked := kit.InterruptsOf(t, events)
	for _, call := range kit.Show(t, q.in.Messages, events)[1].ToolCalls {
		at := slices.IndexFunc(asked, func(x kit.Interrupt) bool { return x.ToolCallID == call.ID })
		if at < 0 {
			t.Fatalf("nobody is asked about %+v, but %+v", call, asked)
		}
		q.questions = append(q.questions, asked[at])
	}
	if len(q.questions) != tenCalls || len(asked) != tenCalls {
		t.Fatalf("the questions are %+v", asked)
	}
	for i := range tenCalls {
		first := q.opinion(i, 0)
		second := first
		if q.random.IntN(3) == 0 {
			second = q.opinion(i, 1)
		}
		q.opinions[0], q.opinions[1] = append(q.opinions[0], first), append(q.opinions[1], second)
	}
}

// opinion returns a person's about a call; that of the other one may be the same.
func (q *quarrel) opinion(call, person int) opinion {
	switch q.random.IntN(8) {
	case 0:
		return opinion{Decision: "reject", Reason: kit.Say("too dear")}
	case 1:
		return opinion{Decision: "answer", Content: kit.Say("paid in cash")}
	case 2, 3:
		return opinion{Decision: "edit", Args: map[string]any{"note": q.notes[call], "amount": 1000*(person+1) + call}}
	}
	return opinion{Decision: "approve"}
}

// settle lets both decide about all. If the process is to be killed, that happens while they do,
// and both leave the same call for afterwards: until then none is made.
func (q *quarrel) settle(t *testing.T, kill bool, total *tally) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
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
				if q.answers[person][at], err = q.decide(ctx, at, q.opinions[person][at]); err != nil {
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

// decide tells the thread an opinion until it is known what became of it.
func (q *quarrel) decide(ctx context.Context, at int, o opinion) (reply, error) {
	for {
		if _, err := q.perdure.Addresses(ctx); err != nil {
			return reply{}, err
		}
		resp, err := q.perdure.Post(ctx, "/v1/threads/"+q.in.ThreadID+"/approvals/"+q.questions[at].ID, o)
		if err != nil {
			if ctx.Err() != nil {
				return reply{}, err
			}
			continue // it was killed, or is not there yet
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

// verify holds what both were told, what was charged and what the thread shows against each other.
func (q *quarrel) verify(t *testing.T, total *tally) {
	t.Helper()
	f := q.perdure.FollowThread(t, q.in)
	f.UntilSuccess(t)
	f.Cut()
	results := map[string]string{}
	messages := kit.Show(t, nil, f.Events)
	for _, m := range messages {
		results[m.ToolCallID] = m.Content
	}
	if last := messages[len(messages)-1]; last.Content != q.done || len(messages) != 3+tenCalls {
		t.Errorf("the thread has %d messages, the last %+v", len(messages), last)
	}
	for i, asked := range q.questions {
		stands, err := q.stands(i, total)
		if err == nil {
			err = q.executed(i, stands, results[asked.ToolCallID], total)
		}
		if err != nil {
			t.Errorf("call %d, about which they decided %+v and %+v: %v", i, q.opinions[0][i], q.opinions[1][i], err)
		}
	}
}

// stands finds out which decision about a call counts, and whether both were told.
func (q *quarrel) stands(i int, total *tally) (opinion, error) {
	a, b := q.answers[0][i], q.answers[1][i]
	total.Calls++
	if fmt.Sprint(q.opinions[0][i]) == fmt.Sprint(q.opinions[1][i]) {
		total.Agreed++
		if a.status != http.StatusOK || b.status != http.StatusOK || !a.Repeated && !b.Repeated {
			return opinion{}, fmt.Errorf("who agree are told %+v and %+v", a, b)
		}
		total.Repeated++
		return q.opinions[0][i], nil
	}
	total.Contradicted++
	winner, loser := 0, b
	if a.status != http.StatusOK {
		winner, a, loser = 1, b, a
	}
	stands := q.opinions[winner][i]
	if a.status != http.StatusOK || a.Decision != stands.Decision {
		return opinion{}, fmt.Errorf("nobody is told that he was heard: %+v and %+v", a, loser)
	}
	if loser.status != http.StatusConflict || loser.Code != "decided" || loser.Recorded == nil || loser.Recorded.Decision != stands.Decision {
		return opinion{}, fmt.Errorf("who came too late is told %+v", loser)
	}
	total.Conflicts++
	return stands, nil
}

// executed compares what was charged, and what the conversation has, with the decision about a
// call.
func (q *quarrel) executed(i int, stands opinion, result string, total *tally) error {
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
	for _, c := range q.till.Charges(q.notes[i]) {
		got = append(got, c.Amount)
	}
	if len(want) > 0 {
		total.Made++
	} else {
		total.NotMade++
	}
	if !slices.Equal(got, want) || !strings.Contains(result, heard) {
		return fmt.Errorf("%+v counts, and %v was charged; the model heard %q", stands, got, result)
	}
	return nil
}
