package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/agui"
)

const meteredAgents = `name: plain
model: openai/metered
instructions: You answer.
limits: {tokens: 1000000000}
---
name: handy
model: openai/metered
instructions: You calculate.
tools: [calculate]
limits: {tokens: 1000000000}
---
name: lead
model: openai/metered
instructions: You lead.
tools: ["agent:handy"]
limits: {tokens: 1000000000}
---
name: fan
model: openai/metered
limits: {tokens: 1000000000}
steps:
  - name: all
    parallel:
      - {name: one, agent: {instructions: You are the first.}, input: "${input.text}"}
      - {name: two, agent: {instructions: You are the second.}, input: "${input.text}"}
      - {name: three, agent: {instructions: You are the third.}, input: "${input.text}"}
  - {name: sum, agent: {instructions: You sum up.}, input: "${input.text}"}
---
name: chatty
model: openai/metered
instructions: You remember.
context: {maxTokens: 1000, policy: summarize}
limits: {tokens: 1000000000}
`

// What runs report as their usage is what the model server has billed: whole answers exactly, each answer that was cut once
// and as an estimate, refused requests not at all. So it is whatever breaks, over summaries, subagents, parallel branches,
// cancels and kills, and the figures of runs, threads and the tenant's day agree. CHAOS_SEED chooses; with -chaos there are
// 500 runs.
func TestUsageIsWhatWasBilled(t *testing.T) {
	t.Parallel()
	dayOf(t)
	seed, err := strconv.ParseUint(os.Getenv("CHAOS_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("CHAOS_SEED=%d", seed)
	runs, atOnce := 36, 12
	if *chaos {
		runs, atOnce = 500, 20
	}
	m := openMeter(t, rand.New(rand.NewPCG(seed, 1)))
	p := newPerdure(t.TempDir()+"/data", sharedModel)
	p.agents = t.TempDir()
	if err := os.WriteFile(p.agents+"/all.yaml", []byte(meteredAgents), 0o600); err != nil {
		t.Fatal(err)
	}
	p.env = append(m.environ(), "PERDURE_BUDGET_TENANT_TOKENS_PER_DAY=1000000000000")
	p.keep(t)
	p.start(t)
	a := &audit{meter: m, p: p, random: rand.New(rand.NewPCG(seed, 2))}
	for a.runs < runs && !t.Failed() {
		a.round(t, atOnce)
	}
	a.checkDay(t)
	t.Logf("%d runs with %d model calls, %d of them cut, over %d kills", a.runs, a.calls, a.cut, a.kills)
	t.Logf("%d calls are counted that the server has not billed:\n%s", a.lost, strings.Join(a.unseen, "\n"))
	if a.lost > a.kills {
		t.Errorf("that are too many after %d kills", a.kills)
	}
}

// audit holds the figures of runs against the journal of a meter. One goroutine uses it.
type audit struct {
	meter  *meter
	p      *perdure
	random *rand.Rand

	runs, kills int
	calls, cut  int
	// lost counts calls whose worker died between its note and the request, or between a refusal and the note of that.
	lost   int
	unseen []string // their threads
	tokens int64
}

// meteredThread is a thread of a round.
type meteredThread struct {
	agent  string
	id     string
	runs   int
	cancel int // the first run, after so many events; 0 = it is not cancelled
	ends   []event
	cuts   bool // a cancel was sent
}

// round has some conversations at the same time, and kills the process at two moments among their events.
func (a *audit) round(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
	defer cancel()
	var all []*meteredThread
	for range n {
		c := &meteredThread{agent: []string{"plain", "handy", "lead", "fan", "chatty"}[a.random.IntN(5)], id: newThread(), runs: 1}
		if c.agent == "chatty" {
			c.runs = 4
		}
		if a.random.IntN(4) == 0 {
			c.cancel = 2 + a.random.IntN(12)
		}
		all, a.runs = append(all, c), a.runs+c.runs
	}
	first := int64(1 + a.random.IntN(n*12))
	second := first + int64(1+a.random.IntN(n*8))
	var events atomic.Int64
	reached, over := make(chan struct{}, 2), make(chan error, 1)
	var g errgroup.Group
	for _, c := range all {
		g.Go(func() error {
			return c.play(ctx, a.p.endpoint, func() {
				if n := events.Add(1); n == first || n == second {
					reached <- struct{}{}
				}
			})
		})
	}
	go func() { over <- g.Wait() }()
	for playing := true; playing; {
		select {
		case <-reached:
			a.kills++
			a.p.kill()
			a.p.start(t)
		case err := <-over:
			if err != nil {
				t.Fatal(err)
			}
			playing = false
		}
	}
	for _, c := range all {
		if err := a.check(ctx, c); err != nil {
			t.Errorf("%s, %s: %v", c.agent, c.id, err)
		}
	}
}

// play has the runs of the thread, one after another.
func (c *meteredThread) play(ctx context.Context, p *endpoint, had func()) error {
	for i := range c.runs {
		in := newInput(say(fmt.Sprintf("%s, part %d: %s", c.id, i, strings.Repeat("tell me more ", 90))))
		in.ThreadID, in.RunID = c.id, fmt.Sprintf("run-%d", i+1)
		f := p.quiet(ctx, in)
		f.agent = "/v1/agents/" + c.agent + "/runs"
		defer f.cut()
		for n := 1; ; n++ {
			e, err := f.next()
			if err != nil {
				return err
			}
			if had(); e.terminal() {
				c.ends = append(c.ends, e)
				break
			}
			if i == 0 && n == c.cancel {
				if err := cancelSurely(ctx, p, in); err != nil {
					return err
				}
				c.cuts = true
			}
		}
	}
	return nil
}

// cancelSurely cancels a run, over kills.
func cancelSurely(ctx context.Context, p *endpoint, in input) error {
	for {
		resp, err := p.post(ctx, cancelPath(in), map[string]string{})
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusServiceUnavailable {
				return nil
			}
		}
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
}

// figures are sums of a usage.
type figures struct {
	input, output int64
	calls         int64 // of estimates
}

type estimate struct {
	Calls int64             `json:"calls"`
	Usage []agui.TokenUsage `json:"usage"`
}

func sumOf(usage []agui.TokenUsage) (f figures) {
	for _, u := range usage {
		if u.InputTokens != nil {
			f.input += *u.InputTokens
		}
		if u.OutputTokens != nil {
			f.output += *u.OutputTokens
		}
	}
	return f
}

// reported is what the last events of runs report: all of it, and the estimated part.
func reported(ends []event) (all, estimated figures, err error) {
	for _, e := range ends {
		var end struct {
			Usage    []agui.TokenUsage          `json:"usage"`
			Metadata map[string]json.RawMessage `json:"metadata"`
		}
		var cut estimate
		err := json.Unmarshal(e.Data, &end)
		if raw := end.Metadata["perdure.usage.estimated"]; err == nil && raw != nil {
			err = json.Unmarshal(raw, &cut)
		}
		if err != nil {
			return all, estimated, err
		}
		sum, part := sumOf(end.Usage), sumOf(cut.Usage)
		all.input, all.output = all.input+sum.input, all.output+sum.output
		estimated.input, estimated.output, estimated.calls = estimated.input+part.input, estimated.output+part.output, estimated.calls+cut.Calls
	}
	return all, estimated, nil
}

// check holds a thread against the journal.
func (a *audit) check(ctx context.Context, c *meteredThread) error {
	all, estimated, err := reported(c.ends)
	if err != nil {
		return err
	}
	a.tokens += all.input + all.output
	if err := a.checkThread(ctx, c, all, estimated); err != nil {
		return err
	}
	journal := a.meter.of(c.id)
	last := map[string]int{}
	for i, b := range journal {
		if !b.refused {
			last[b.step] = i
		}
	}
	var whole figures
	var cut int64
	var unclear []billed // sent whole when the run was cancelled: Perdure may have heard the end, or not
	for i, b := range journal {
		switch {
		case b.refused:
			continue
		case last[b.step] != i || !b.whole:
			cut++
		case c.cuts:
			unclear = append(unclear, b)
		default:
			whole.input, whole.output = whole.input+b.input, whole.output+b.output
		}
		a.calls++
	}
	exact := figures{input: all.input - estimated.input, output: all.output - estimated.output}
	for set := range 1 << len(unclear) {
		with, missing := whole, cut
		for i, b := range unclear {
			if set&(1<<i) != 0 {
				with.input, with.output = with.input+b.input, with.output+b.output
			} else {
				missing++
			}
		}
		if with != exact {
			continue
		}
		if lost := estimated.calls - missing; lost < 0 || lost > 1 {
			return fmt.Errorf("%d calls are estimated, the server has %d that were cut:\n%s", estimated.calls, missing, listing(journal))
		} else if lost > 0 {
			a.lost++
			a.unseen = append(a.unseen, fmt.Sprintf("%s, cancelled %t, estimates %+v\n%s", c.agent, c.cuts, estimated, listing(journal)))
		}
		if (estimated.calls > 0) != (estimated.input > 0) {
			return fmt.Errorf("the estimate is %+v", estimated)
		}
		a.cut += int(missing)
		return nil
	}
	return fmt.Errorf("the runs report %+v and %+v by estimates, the server has billed %+v:\n%s", exact, estimated, whole, listing(journal))
}

func listing(journal []billed) string {
	var b strings.Builder
	for _, call := range journal {
		fmt.Fprintf(&b, "%+v\n", call)
	}
	return b.String()
}

// checkThread holds what the thread says against what its runs have reported.
func (a *audit) checkThread(ctx context.Context, c *meteredThread, all, estimated figures) error {
	resp, err := a.p.get(ctx, "/v1/threads/"+c.id, "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var thread struct {
		Usage     []agui.TokenUsage `json:"usage"`
		Estimated estimate          `json:"estimated"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&thread); err != nil {
		return err
	}
	part := sumOf(thread.Estimated.Usage)
	part.calls = thread.Estimated.Calls
	if sum := sumOf(thread.Usage); sum != (figures{input: all.input, output: all.output}) || part != estimated {
		return fmt.Errorf("the thread has %+v and %+v by estimates, its runs report %+v and %+v", sum, part, all, estimated)
	}
	return nil
}

// checkDay holds the tenant's day against what all runs have reported.
func (a *audit) checkDay(t *testing.T) {
	t.Helper()
	where, err := a.p.addresses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(where.NATS)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	days, err := js.KeyValue(t.Context(), "PERDURE_budget")
	if err != nil {
		t.Fatal(err)
	}
	entry, err := days.Get(t.Context(), dayOf(t)+".default")
	if err != nil {
		t.Fatal(err)
	}
	var day struct {
		Tokens int64 `json:"tokens"`
	}
	if err := json.Unmarshal(entry.Value(), &day); err != nil || day.Tokens != a.tokens {
		t.Errorf("the tenant has used %d tokens today, its runs report %d: %v", day.Tokens, a.tokens, err)
	}
}
