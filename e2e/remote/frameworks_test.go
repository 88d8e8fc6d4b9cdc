package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/e2e/kit"
)

// orderPipeline is a pipeline of three frameworks: an agent of Mastra pays an order, a graph of LangGraph
// reserves its goods, and an agent of Perdure ships them with an HTTP tool.
const orderPipeline = `name: payer
remote: {url: "http://%[1]s/payer", retry: restart}
---
name: stock
remote: {url: "http://%[2]s/chat?exact", retry: restart}
---
kind: tool
name: ship
description: Ships an order.
parameters: {type: object, required: [order], properties: {order: {type: string}}}
http: {method: POST, url: "%[3]s/ship"}
idempotent: true
---
name: order
model: openai/scripted-by-the-test
tools: [ship]
steps:
  - {name: pay, agent: payer, input: "Pay ${input.text}"}
  - {name: reserve, agent: stock, input: "slowly reserve ${input.text}"}
  - {name: ship, agent: {instructions: You ship., tools: [ship]}, input: "Ship ${input.text}"}
`

// frameworks is a cluster with agents of three frameworks, and their effects.
type frameworks struct {
	*kit.Cluster
	effects   *effectServer
	mastra    *kit.AgentServer
	langGraph langGraph
	front     *kit.Endpoint // always routes to an API that serves
	api       *kit.API
	workers   []*kit.Process
}

// startFrameworks starts the servers of the frameworks, and a cluster with one API and two workers. definitions
// are added to those of orderPipeline, with the addresses of Mastra, LangGraph and the effects as their arguments.
func startFrameworks(t *testing.T, definitions string) *frameworks {
	t.Helper()
	f := &frameworks{effects: startEffectServer(t), Cluster: kit.NewCluster(t)}
	f.mastra = kit.StartAgentServer(t, "mastra_agent.mjs", "mastra", f.effects.URL)
	f.langGraph = startLangGraph(t, f.effects.URL)
	f.Agents = t.TempDir()
	definitions = fmt.Sprintf(orderPipeline+definitions, f.mastra.Address, f.langGraph.Address, f.effects.URL)
	if err := os.WriteFile(filepath.Join(f.Agents, "all.yaml"), []byte(definitions), 0o600); err != nil {
		t.Fatal(err)
	}
	f.Env = append(f.Env, "PERDURE_ALLOW_PRIVATE_HOSTS=true", "PERDURE_AGENTS="+f.Agents) // workers read the tools
	f.StartServers(t)
	f.front = kit.NewEndpoint(f.Threads)
	f.startAPI(t)
	f.workers = []*kit.Process{f.StartWorker(t), f.StartWorker(t)}
	return f
}

// startAPI starts the API to which front routes.
func (f *frameworks) startAPI(t *testing.T) {
	t.Helper()
	f.api = f.StartAPI(t)
	where, err := f.api.Addresses(t.Context())
	if err == nil {
		err = f.front.Up(t.Context(), where)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// victims are the processes that kill kills, by their number.
var victims = []string{"worker 0", "worker 1", "api", "Mastra", "LangGraph", "both workers"}

// kill kills processes with SIGKILL, and starts them again.
func (f *frameworks) kill(t *testing.T, victim int) {
	t.Helper()
	switch victim {
	case 0, 1:
		f.workers[victim].Kill()
		f.workers[victim] = f.StartWorker(t)
	case 2:
		f.front.Down()
		f.api.Kill()
		f.startAPI(t)
	case 3:
		f.mastra.Kill()
		f.mastra.Start(t)
	case 4:
		f.langGraph.Kill()
		f.langGraph.Start(t)
	default:
		for _, w := range f.workers {
			w.Kill()
		}
		f.workers = []*kit.Process{f.StartWorker(t), f.StartWorker(t)}
	}
}

// orderRun is a run of the pipeline, with its reader.
type orderRun struct {
	order  string
	reader *kit.Follower
}

// The answers to the prompts of the pipeline's steps.
const (
	willPay, paid = kit.Mark + " I pay it.", kit.Mark + " I have paid it, which took me a while, and it was a pleasure to do so."
	willShip      = kit.Mark + " I ship it."
	shipped       = kit.Mark + " I have shipped it, with all that belongs to it, in one large parcel."
)

// newOrder prepares a run, and makes the model answer its agents slowly.
func (f *frameworks) newOrder(ctx context.Context, t *testing.T) *orderRun {
	order := kit.Marked("order")
	yes, no := true, false
	for _, a := range []struct{ prompt, tool, before, after string }{{"Pay ", "pay", willPay, paid}, {"Ship ", "ship", willShip, shipped}} {
		call := kit.ModelCall{Name: a.tool, Arguments: fmt.Sprintf(`{"order":%q}`, order)}
		prompt := a.prompt + order
		kit.SharedModel.Answer(t,
			kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{Content: a.before, ToolCalls: []kit.ModelCall{call}}, Latency: 20, ChunkSize: 4},
			kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: a.after}, Latency: 30, ChunkSize: 4})
	}
	reader := f.front.NewUnrecordedFollower(ctx, kit.NewInput(order))
	reader.Agent = "/v1/agents/order/runs"
	return &orderRun{order: order, reader: reader}
}

// messages returns the messages of the run's thread after it.
func (o *orderRun) messages() []kit.Message {
	step := func(text, tool, result, answer string) []kit.Message {
		call := kit.ToolCallMessage(kit.ModelCall{Name: tool, Arguments: fmt.Sprintf(`{"order":%q}`, o.order)})
		call.Content = text
		return []kit.Message{call, kit.ToolMessage(result), kit.AssistantMessage(answer)}
	}
	reserved := receipt(effect{"reserve", o.order})
	return slices.Concat(o.reader.In.Messages,
		step(willPay, "pay", kit.Quote(receipt(effect{"pay", o.order})), paid), // Mastra sends results as JSON
		step("Let me reserve it. ", "reserve", reserved, "So: "+reserved),
		step(willShip, "ship", receipt(effect{"ship", o.order}), shipped))
}

// check checks that the run has succeeded, and that its live reader, a fresh one and the log have its messages.
func (o *orderRun) check(ctx context.Context, t *testing.T, f *frameworks) error {
	if last := o.reader.Events[len(o.reader.Events)-1]; kit.Outcome(last) != "success" {
		return fmt.Errorf("end of %s = %s, want success", o.order, last.Data)
	}
	live, err := kit.Reduce(o.reader.In.Messages, o.reader.Events, kit.RetractWarning)
	if err != nil {
		return fmt.Errorf("the live reader of %s: %w", o.order, err)
	}
	live = kit.WithoutEmptyReasoning(live)
	if diff := cmp.Diff(o.messages(), live, kit.IgnoreIDs); diff != "" {
		return fmt.Errorf("messages of the live reader of %s (-want +got):\n%s", o.order, diff)
	}
	got := map[string][]kit.Message{"the log": f.front.MessagesOf(t, o.reader.In.ThreadID)}
	for what, path := range map[string]string{"a reader with the input": "", "a reader that joins": kit.EventsPath(o.reader.In) + "?join=true"} {
		late := f.front.NewUnrecordedFollower(ctx, o.reader.In)
		late.Agent, late.AttachPath = o.reader.Agent, path
		if err := late.Read(); err != nil {
			return fmt.Errorf("%s of %s: %w", what, o.order, err)
		}
		var had []kit.Message
		if path == "" {
			had = o.reader.In.Messages
		}
		if got[what], err = kit.Reduce(had, late.Events); err != nil {
			return fmt.Errorf("%s of %s: %w", what, o.order, err)
		}
	}
	for what, messages := range got {
		if diff := cmp.Diff(live, messages, withoutEmptyCalls); diff != "" {
			return fmt.Errorf("messages of %s of %s (-live +got):\n%s", what, o.order, diff)
		}
	}
	return nil
}

// countdown announces that a number of events was read. It is safe for concurrent use.
type countdown struct {
	mu   sync.Mutex
	left int
	over chan struct{} // closed at 0
}

// begin starts the countdown again, and returns the channel that is closed at its end.
func (c *countdown) begin(events int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.over = events, make(chan struct{})
	return c.over
}

// count counts an event.
func (c *countdown) count() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		close(c.over)
	}
}

// read reads the run to its end.
func (o *orderRun) read(events *countdown) error {
	defer o.reader.Cut()
	for {
		e, err := o.reader.Next()
		if err != nil {
			return fmt.Errorf("%s: %w", o.order, err)
		}
		if events.count(); e.Terminal() {
			return nil
		}
	}
}

// TestFrameworksSurviveKills: concurrent runs of a pipeline of three frameworks, while the processes of Perdure
// and the servers of the frameworks are killed at random moments. Each effect happens once, because the tools of
// each framework send a key of the run, and every transcript is exact. With -chaos there are 100 kills. CHAOS_SEED
// chooses the victims and the moments, which are counted in events, not in time.
func TestFrameworksSurviveKills(t *testing.T) {
	t.Parallel()
	seed := kit.ChaosSeed(t)
	kills, lanes, longest := len(victims), 3, 2*kit.WaitTimeout
	if *kit.Chaos {
		kills, lanes, longest = 100, 8, time.Hour
	}
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	f := startFrameworks(t, "")
	runs, err := f.runWithKills(ctx, t, newKills(seed, kills, lanes), lanes)
	if err != nil {
		t.Fatal(err)
	}
	var orders []string
	for _, o := range runs {
		orders = append(orders, o.order)
		err = errors.Join(err, o.check(ctx, t, f))
	}
	repeated, effectsErr := f.effects.check(orders, "pay", "reserve", "ship")
	if err = errors.Join(err, effectsErr); err != nil {
		t.Error(err)
	}
	t.Logf("%d runs, %d kills, %d repeated requests", len(runs), kills, repeated)
}

// killMoment is a kill after a number of events since the last one.
type killMoment struct{ victim, events int }

// newKills returns kills at random moments. Each victim has the same number of kills, if n is a multiple of their
// number. The mean time between kills does not depend on the lanes: a step that fails eight times fails its run.
func newKills(seed uint64, n, lanes int) (kills []killMoment) {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the moments of the kills are no secret
	for len(kills) < n {
		for _, victim := range random.Perm(len(victims)) {
			kills = append(kills, killMoment{victim: victim, events: 1 + random.IntN(30*lanes)})
		}
	}
	return kills[:n]
}

// runWithKills runs the pipeline in some lanes, one run after the other in each, until all kills have been made,
// and returns the runs.
func (f *frameworks) runWithKills(ctx context.Context, t *testing.T, kills []killMoment, lanes int) (runs []*orderRun, err error) {
	t.Helper()
	var events countdown
	first := events.begin(kills[0].events)
	killed := make(chan struct{})
	var reading errgroup.Group
	var mu sync.Mutex // of runs
	for range lanes {
		reading.Go(func() error {
			for {
				o := f.newOrder(ctx, t)
				mu.Lock()
				runs = append(runs, o)
				mu.Unlock()
				if err := o.read(&events); err != nil {
					return err
				}
				select {
				case <-killed:
					return nil
				default:
				}
			}
		})
	}
	next := first
	for i, k := range kills {
		select {
		case <-next:
		case <-ctx.Done():
			return runs, errors.Join(ctx.Err(), reading.Wait())
		}
		t.Logf("kill %d: %s", i+1, victims[k.victim])
		f.kill(t, k.victim)
		if i+1 < len(kills) {
			next = events.begin(kills[i+1].events)
		}
	}
	close(killed)
	return runs, reading.Wait()
}
