package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/e2e/kit"
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

// widths are the maximal numbers of concurrent model calls of an agent's run.
var widths = map[string]int64{"plain": 1, "handy": 1, "lead": 2, "fan": 3, "chatty": 1}

// TestUsageEqualsBilledUsage: runs report the usage that the model server has billed, over
// summaries, subagents, branches, cancels and kills. Answers with a usage count exactly, each
// answer without one counts once as an estimate, and refused requests do not count. The figures of
// runs, threads and the tenant's day agree. CHAOS_SEED chooses; with -chaos there are 500 runs.
//
// After a kill the log may have the note of a call although the server did not receive the request,
// or refused it. Such a call is charged as an estimate of its input. A thread has at most as many
// of them as kills have hit its model calls.
func TestUsageEqualsBilledUsage(t *testing.T) {
	t.Parallel()
	a := setupAudit(t, true)
	a.run(t)
	t.Logf("after %d kills %d calls are estimated although the server did not receive or has refused them:\n%s", a.kills, a.lost, strings.Join(a.lostThreads, "\n"))
	if a.lost > a.kills { // a kill may cause several, but only within a millisecond each
		t.Errorf("estimated calls = %d after %d kills, want at most one per kill", a.lost, a.kills)
	}
}

// TestMetricsEqualBilledUsage: without kills, the metrics are what the model server has billed,
// too. A killed process loses the metrics that were not collected.
func TestMetricsEqualBilledUsage(t *testing.T) {
	t.Parallel()
	a := setupAudit(t, false)
	a.run(t)
	if a.lost > 0 {
		t.Errorf("estimated calls = %d, want none: the server has not received or has refused them", a.lost)
	}
	a.checkMetrics(t)
}

// audit compares the usage of runs with the record of a meter. Only one goroutine may use it.
type audit struct {
	meter     *meter
	p         *kit.Perdure
	random    *rand.Rand
	withKills bool // processes are killed

	runs, kills int
	calls, cut  int
	// lost counts calls whose worker died between the note and the request, or between a refusal
	// and its note.
	lost        int
	lostThreads []string // their threads
	// all is the usage that the runs report, estimated its estimated part.
	all, estimated figures
}

// setupAudit starts a process whose usage is compared with the bills.
func setupAudit(t *testing.T, wild bool) *audit {
	t.Helper()
	dayOf(t)
	seed := kit.ChaosSeed(t)
	m := startMeter(t, rand.New(rand.NewPCG(seed, 1)))
	p := kit.NewPerdure(t.TempDir()+"/data", kit.SharedModel)
	p.Agents = t.TempDir()
	if err := os.WriteFile(p.Agents+"/all.yaml", []byte(meteredAgents), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = append(m.environ(), "PERDURE_METRICS_ADDR=127.0.0.1:0", "PERDURE_BUDGET_TENANT_TOKENS_PER_DAY=1000000000000")
	p.InspectAtEnd(t)
	p.Start(t)
	return &audit{meter: m, p: p, random: rand.New(rand.NewPCG(seed, 2)), withKills: wild}
}

// run runs all rounds and compares the tenant's day with them.
func (a *audit) run(t *testing.T) {
	t.Helper()
	runs, atOnce := 36, 12
	if *kit.Chaos {
		runs, atOnce = 500, 20
	}
	for a.runs < runs && !t.Failed() {
		a.round(t, atOnce)
	}
	a.checkDay(t)
	a.checkReport(t)
	t.Logf("%d runs with %d model calls, %d of them estimated, over %d kills", a.runs, a.calls, a.cut, a.kills)
	t.Logf("they report %+v, of which %+v are estimated", a.all, a.estimated)
}

// meteredThread is a thread of a round.
type meteredThread struct {
	agent      string
	id         string
	runs       int
	cancel     int // cancel the first run after so many events; 0 = never
	ends       []kit.Event
	cancelSent bool // a cancel was sent
	over       atomic.Bool
	kills      int64 // kills before its end
}

// round runs n conversations concurrently and, if withKills, kills the process at two moments among
// their events.
func (a *audit) round(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*kit.WaitTimeout)
	defer cancel()
	var all []*meteredThread
	for range n {
		c := &meteredThread{agent: []string{"plain", "handy", "lead", "fan", "chatty"}[a.random.IntN(5)], id: kit.NewThread(), runs: 1}
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
			return c.run(ctx, a.p.Endpoint, func() {
				if n := events.Add(1); a.withKills && (n == first || n == second) {
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
			for _, c := range all {
				if !c.over.Load() {
					c.kills++
				}
			}
			a.p.Kill()
			a.p.Start(t)
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

// run runs the runs of the thread, one after another.
func (c *meteredThread) run(ctx context.Context, p *kit.Endpoint, had func()) error {
	for i := range c.runs {
		in := kit.NewInput(kit.Marked(fmt.Sprintf("%s, part %d: %s", c.id, i, strings.Repeat("tell me more ", 90))))
		in.ThreadID, in.RunID = c.id, fmt.Sprintf("run-%d", i+1)
		f := p.NewUnrecordedFollower(ctx, in)
		f.Agent = "/v1/agents/" + c.agent + "/runs"
		defer f.Cut()
		for n := 1; ; n++ {
			e, err := f.Next()
			if err != nil {
				return err
			}
			if had(); e.Terminal() {
				c.ends = append(c.ends, e)
				break
			}
			if i == 0 && n == c.cancel {
				if err := cancelSurely(ctx, p, in); err != nil {
					return err
				}
				c.cancelSent = true
			}
		}
	}
	c.over.Store(true)
	return nil
}

// cancelSurely cancels a run, and repeats the request over kills.
func cancelSurely(ctx context.Context, p *kit.Endpoint, in kit.Input) error {
	for {
		resp, err := p.Post(ctx, kit.CancelPath(in), map[string]string{})
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

// figures are sums of usage.
type figures struct {
	input, output int64
	calls         int64 // number of estimated calls
}

type estimate struct {
	Calls int64             `json:"calls"`
	Usage []agui.TokenUsage `json:"usage"`
}

// sumOf returns the sum of usage.
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

// add adds other figures.
func (f *figures) add(other figures) {
	f.input, f.output, f.calls = f.input+other.input, f.output+other.output, f.calls+other.calls
}

// usage is the usage in the end of a run, in a list of runs and in a thread.
type usage struct {
	Usage     []agui.TokenUsage `json:"usage"`
	Estimated estimate          `json:"estimated"`
}

// figures returns the sums, and those of the estimated part.
func (u usage) figures() (all, estimated figures) {
	all, estimated = sumOf(u.Usage), sumOf(u.Estimated.Usage)
	estimated.calls = u.Estimated.Calls
	return all, estimated
}

// reported returns the usage in the last event of a run.
func reported(end kit.Event) (u usage, err error) {
	var e struct {
		usage
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	err = json.Unmarshal(end.Data, &e)
	if raw := e.Metadata["perdure.usage.estimated"]; err == nil && raw != nil {
		err = json.Unmarshal(raw, &e.Estimated)
	}
	return e.usage, err
}

// check compares a thread with the meter's record.
func (a *audit) check(ctx context.Context, c *meteredThread) error {
	var all, estimated figures
	var runs []usage
	for _, end := range c.ends {
		u, err := reported(end)
		if err != nil {
			return err
		}
		sum, part := u.figures()
		all.add(sum)
		estimated.add(part)
		runs = append(runs, u)
	}
	a.all.add(all)
	a.estimated.add(estimated)
	if err := a.checkThread(ctx, c, runs, all, estimated); err != nil {
		return err
	}
	journal := a.meter.journalOf(c.id)
	last := map[string]int{}
	for i, b := range journal {
		if !b.refused {
			last[b.step] = i
		}
	}
	var whole figures
	var cut []billed
	var unclear []billed // sent whole when the run was cancelled: Perdure may or may not have read the end
	for i, b := range journal {
		switch {
		case b.refused:
			continue
		case last[b.step] != i || !b.whole || b.noUsage:
			cut = append(cut, b)
		case c.cancelSent:
			unclear = append(unclear, b)
		default:
			whole.add(figures{input: b.input, output: b.output})
		}
		a.calls++
	}
	exact := figures{input: all.input - estimated.input, output: all.output - estimated.output}
	for set := range 1 << len(unclear) {
		with, without := whole, slices.Clone(cut)
		for i, b := range unclear {
			if set&(1<<i) != 0 {
				with.add(figures{input: b.input, output: b.output})
			} else {
				without = append(without, b)
			}
		}
		if with == exact {
			return a.checkEstimates(c, estimated, without, journal)
		}
	}
	return fmt.Errorf("the runs report %+v and %+v by estimates, the server has billed %+v:\n%s", exact, estimated, whole, listing(journal))
}

// checkEstimates compares the estimates of a thread with the calls that broke or reported no usage.
func (a *audit) checkEstimates(c *meteredThread, estimated figures, cut, journal []billed) error {
	var most int64 // output tokens
	for _, b := range cut {
		n := (b.sentBytes + 3) / 4
		if b.whole && !b.noUsage { // the usage may have arrived before the worker died
			n = max(n, b.output)
		}
		most += n
	}
	lost := estimated.calls - int64(len(cut))
	if c.cancelSent { // the run may have been cancelled before Perdure has read the refusal of a call
		lost -= min(max(lost, 0), refused(journal))
	}
	switch {
	case lost < 0 || lost > c.kills*widths[c.agent]:
		return fmt.Errorf("after %d kills %d calls are estimated, the server has %d:\n%s", c.kills, estimated.calls, len(cut), listing(journal))
	case estimated.output > most:
		return fmt.Errorf("the estimate is %+v, and %d tokens of output were sent:\n%s", estimated, most, listing(journal))
	case (estimated.calls > 0) != (estimated.input > 0):
		return fmt.Errorf("the estimate is %+v", estimated)
	case lost > 0:
		a.lostThreads = append(a.lostThreads, fmt.Sprintf("%s, cancelled %t, %d kills, estimates %+v\n%s", c.agent, c.cancelSent, c.kills, estimated, listing(journal)))
	}
	a.lost += int(lost)
	a.cut += len(cut)
	return nil
}

// refused returns how many calls of a journal the server has refused.
func refused(journal []billed) (n int64) {
	for _, b := range journal {
		if b.refused {
			n++
		}
	}
	return n
}

// listing returns the bills as text.
func listing(journal []billed) string {
	var b strings.Builder
	for _, call := range journal {
		fmt.Fprintf(&b, "%+v\n", call)
	}
	return b.String()
}

// checkThread compares the thread and its list of runs with what the runs reported.
func (a *audit) checkThread(ctx context.Context, c *meteredThread, runs []usage, all, estimated figures) error {
	var thread usage
	if err := a.read(ctx, "/v1/threads/"+c.id, &thread); err != nil {
		return err
	}
	if sum, part := thread.figures(); sum != all || part != estimated {
		return fmt.Errorf("the thread has %+v and %+v by estimates, its runs report %+v and %+v", sum, part, all, estimated)
	}
	var list struct {
		Items []usage `json:"items"` // newest first
	}
	if err := a.read(ctx, "/v1/threads/"+c.id+"/runs", &list); err != nil {
		return err
	}
	slices.Reverse(list.Items)
	if diff := cmp.Diff(runs, list.Items); diff != "" {
		return fmt.Errorf("the runs report other figures than the list of runs (-reported +listed):\n%s", diff)
	}
	return nil
}

// read reads an answer of the API.
func (a *audit) read(ctx context.Context, path string, v any) error {
	resp, err := a.p.Get(ctx, path, "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(v)
}

var (
	tokenMetric = regexp.MustCompile(`(?m)^gen_ai_client_token_usage_sum\{(.*)\} (\S+)$`)
	metricLabel = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// checkMetrics compares the metrics with what all runs reported.
func (a *audit) checkMetrics(t *testing.T) {
	t.Helper()
	resp, err := http.Get("http://" + a.p.Addrs.Metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var all, estimated figures
	for _, series := range tokenMetric.FindAllSubmatch(body, -1) {
		n, err := strconv.ParseFloat(string(series[2]), 64)
		if err != nil {
			t.Fatal(err)
		}
		labels := map[string]string{}
		for _, l := range metricLabel.FindAllSubmatch(series[1], -1) {
			labels[string(l[1])] = string(l[2])
		}
		var f figures
		switch labels["gen_ai_token_type"] {
		case "input":
			f.input = int64(n)
		case "output":
			f.output = int64(n)
		default:
			t.Errorf("labels of the series = %s, want known ones", series[1])
		}
		all.add(f)
		if labels["perdure_usage_estimated"] == "true" {
			estimated.add(f)
		}
	}
	want := a.estimated
	want.calls = 0 // the metrics do not count calls
	if all != a.all || estimated != want {
		t.Errorf("metrics = %+v, of which %+v estimated, want %+v and %+v as in the runs", all, estimated, a.all, a.estimated)
	}
}

// checkReport compares the report of usage with what all runs reported: each of them counts once. A
// run counts after its last event, so the report may lack the latest runs at first.
func (a *audit) checkReport(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	defer cancel()
	var report struct {
		Items []struct {
			Runs                      int
			InputTokens, OutputTokens int64
		}
	}
	for {
		if err := a.read(ctx, "/v1/usage?groupBy=day&from="+dayOf(t), &report); err != nil {
			t.Fatalf("report of usage: %v; the last one was %+v, want %d runs", err, report, a.runs)
		}
		if len(report.Items) > 0 && report.Items[0].Runs >= a.runs {
			break
		}
	}
	got := figures{input: report.Items[0].InputTokens, output: report.Items[0].OutputTokens}
	if want := (figures{input: a.all.input, output: a.all.output}); len(report.Items) != 1 || report.Items[0].Runs != a.runs || got != want {
		t.Errorf("report of usage = %+v, want %d runs with %+v", report, a.runs, want)
	}
}

// checkDay compares the tenant's day with what all runs reported.
func (a *audit) checkDay(t *testing.T) {
	t.Helper()
	where, err := a.p.Addresses(t.Context())
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
	if err := json.Unmarshal(entry.Value(), &day); err != nil || day.Tokens != a.all.input+a.all.output {
		t.Errorf("tokens of the tenant today = %d, want %d as in its runs (%v)", day.Tokens, a.all.input+a.all.output, err)
	}
}
