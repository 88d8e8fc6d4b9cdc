package announce

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/workers/assertion"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// until waits until the board misses exactly the given tools.
func until(t *testing.T, b *Board, want ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		got := b.Missing([]string{"charge", "refund", "client:*", "mcp:shop/buy", "see_*"})
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("missing %q, want %q", got, want)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// start announces a worker with tools.
func start(t *testing.T, l *stream.Log, worker string, names ...string) *Announcement {
	t.Helper()
	specs := make([]tools.Spec, len(names))
	for i, name := range names {
		specs[i].Name = name
	}
	return startWith(t, l, worker, specs...)
}

// startWith announces a worker with the given specifications.
func startWith(t *testing.T, l *stream.Log, worker string, specs ...tools.Spec) *Announcement {
	t.Helper()
	offers := make([]Offer, len(specs))
	for i := range specs {
		offers[i].Spec = specs[i]
	}
	return startOffering(t, l, worker, offers...)
}

// startOffering announces a worker with tools of task queues.
func startOffering(t *testing.T, l *stream.Log, worker string, offers ...Offer) *Announcement {
	t.Helper()
	return startSigning(t, l, worker, nil, offers...)
}

// startSigning announces a worker with tools, which signs assertions.
func startSigning(t *testing.T, l *stream.Log, worker string, signer *assertion.Signer, offers ...Offer) *Announcement {
	t.Helper()
	a, err := Start(t.Context(), l, Worker{Name: worker, Version: "v1", Queues: []string{"perdure"}}, Contents{
		Offers: func() []Offer { return offers }, Names: announcedModels, Signer: signer,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// announcedModels are the programs, providers and scripts of the workers of the tests.
func announcedModels() agents.Names {
	return agents.Names{Programs: []string{"order", "invoice"}, Providers: []string{"scripted", "openai"}, Scripts: []string{"demo"}}
}

func TestAnnouncements(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	one := start(t, l, "host.one-1-X", "charge")
	b, err := Watch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	if got := b.Missing([]string{"charge", "refund"}); !slices.Equal(got, []string{"refund"}) {
		t.Errorf("missing tools before any announcement = %q, want refund", got)
	}
	if got := b.Known(); !slices.Equal(got.Tools, []string{"charge"}) || !slices.Equal(got.Programs, []string{"invoice", "order"}) {
		t.Errorf("known names = %+v, want charge and both programs", got)
	} else if !slices.Equal(got.Providers, []string{"openai", "scripted"}) || !slices.Equal(got.Scripts, []string{"demo"}) {
		t.Errorf("known names = %+v, want both providers and the script", got)
	}
	two := start(t, l, "host.two-2-Y", "charge", "refund")
	until(t, b)
	stop := func(a *Announcement) {
		t.Helper()
		if err := a.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
	stop(two)
	until(t, b, "refund")
	stop(one)
	until(t, b, "charge", "refund")
}

// TestAnnouncementsOfDeadWorkerExpire: a worker that dies does not withdraw its announcements.
// They expire.
func TestAnnouncementsOfDeadWorkerExpire(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	a := start(t, l, "w", "charge")
	b, err := Watch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	until(t, b, "refund")
	a.stop()
	a.wait.Wait()
	b.mu.Lock()
	b.now = func() time.Time { return time.Now().Add(announcementTTL) }
	b.mu.Unlock()
	until(t, b, "charge", "refund")
}

func TestWatchEndsWithContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Watch(ctx, streamtest.Open(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("Watch with an ended context = %v, want %v", err, context.Canceled)
	}
}

// TestArguments: arguments are invalid if no worker accepts them. Arguments of an unknown tool are
// not reported as invalid.
func TestArguments(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	schema := func(kind string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{"a":{"type":"` + kind + `"}},"additionalProperties":false}`)
	}
	one := startWith(t, l, "one", tools.Spec{Name: "add", Parameters: schema("integer")}, tools.Spec{Name: "say"})
	again := startWith(t, l, "same", tools.Spec{Name: "add", Parameters: schema("integer")})
	b, err := Watch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	check := func(tool, arguments string) string {
		t.Helper()
		pointer, reason, err := b.Check(t.Context(), tool, json.RawMessage(arguments))
		if err != nil {
			t.Error(err)
		}
		return pointer + " " + reason
	}
	for call, want := range map[[2]string]string{
		{"add", `{"a":1}`}: " ", {"add", `{"a":"1"}`}: "/a expected integer, got string", {"say", `{"a":"1"}`}: " ", {"else", `{"a":"1"}`}: " ",
	} {
		if got := check(call[0], call[1]); got != want {
			t.Errorf("%v: %q, want %q", call, got, want)
		}
	}
	newer := startWith(t, l, "newer", tools.Spec{Name: "add", Parameters: schema("string")}, tools.Spec{Name: "refund"}, tools.Spec{Name: "charge"})
	until(t, b)
	if got := check("add", `{"a":"1"}`); got != " " {
		t.Errorf("arguments that a newer worker accepts: got %q, want no problem", got)
	}
	for _, a := range []*Announcement{one, again, newer} {
		if err := a.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// TestToolsOfOtherWorkers: workers of a task queue announce the tools of a server, and other
// workers can describe them.
func TestToolsOfOtherWorkers(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	b, err := Watch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	if _, err := b.Offers("shop", "floor"); err == nil || b.Served("floor") {
		t.Errorf("tools of a queue without workers: got %v, want an error", err)
	}
	buy := tools.Spec{
		Name: "shop_buy", Description: "Buys.", Parameters: json.RawMessage(`{"type":"object"}`), TaskQueue: "floor", Sequence: "mcp:shop",
		Timeout: time.Second, MaxResult: 1 << 10, Idempotent: true, Attempts: 2,
	}
	sell := buy
	sell.Name = "shop_sell"
	other := buy
	other.TaskQueue = "cellar"
	newer := buy
	newer.Description = "Buys more."
	one := startOffering(t, l, "one", Offer{Server: "shop", Own: "sell", Spec: sell}, Offer{Server: "shop", Own: "buy", Spec: buy}, Offer{Server: "bar", Own: "buy", Spec: buy})
	two := startOffering(t, l, "two", Offer{Server: "shop", Own: "buy", Spec: newer}, Offer{Server: "shop", Own: "hide", Spec: other})
	three := startOffering(t, l, "three", Offer{Spec: tools.Spec{Name: "charge"}}, Offer{Spec: tools.Spec{Name: "refund"}})
	until(t, b)
	offers, err := b.Offers("shop", "floor")
	if err != nil || len(offers) != 2 || offers[0].Name != "buy" || offers[1].Name != "sell" {
		t.Fatalf("offers = %+v, %v, want buy and sell", offers, err)
	}
	if got := offers[1].Tool.Spec(); !reflect.DeepEqual(got, sell) {
		t.Errorf("specification of the offer = %+v, want %+v", got, sell)
	}
	if _, err := offers[0].Tool.Call(t.Context(), tools.Call{}); err == nil {
		t.Error("call of an offered tool: got no error, want one")
	}
	again, err := b.Offers("shop", "floor")
	if err != nil || again[0] != offers[0] {
		t.Errorf("second lookup = %+v, %v, want the same offers", again, err)
	}
	if !b.Served("floor") || !b.Served("cellar") || b.Served("attic") {
		t.Error("served queues differ, want floor and cellar")
	}
	for _, a := range []*Announcement{one, two, three} {
		if err := a.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// TestWorkersAreListed: the board lists the workers with their tools, without those that have
// stopped or whose announcement has expired.
func TestWorkersAreListed(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	one, two := start(t, l, "one", "refund", "charge"), start(t, l, "two")
	b, err := Watch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	workers := b.Workers()
	if len(workers) != 2 || workers[0].Name != "one" || workers[0].Version != "v1" || !slices.Equal(workers[0].Tools, []string{"charge", "refund"}) ||
		!slices.Equal(workers[0].Queues, []string{"perdure"}) || time.Since(workers[0].SeenAt) > time.Minute || workers[1].Name != "two" {
		t.Errorf("workers = %+v, want one with its tools, and two", workers)
	}
	if err := one.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, b, "charge", "refund")
	if workers := b.Workers(); len(workers) != 1 || workers[0].Name != "two" {
		t.Errorf("after one has stopped: workers = %+v, want two", workers)
	}
	if err := two.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestCircuits: the circuits of a worker appear in its announcement when they open, and disappear when
// they close. Without a change it is written no more often than without circuits.
func TestCircuits(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	circuits := make(chan []Circuit, 1)
	circuits <- nil
	worker := Worker{Name: "w", Version: "v1", Queues: []string{"perdure"}}
	started := time.Now()
	a, err := Start(t.Context(), l, worker, Contents{Offers: func() []Offer { return nil }, Names: announcedModels, Circuits: func() []Circuit {
		now := <-circuits
		circuits <- now
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	b, err := Watch(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	opened := Circuit{Model: "openai/gpt-5", State: "open", Since: time.UnixMilli(1).UTC()}
	for _, want := range [][]Circuit{{opened}, nil} {
		<-circuits
		circuits <- want
		deadline := time.Now().Add(30 * time.Second)
		for !slices.Equal(b.Workers()[0].Circuits, want) {
			if time.Now().After(deadline) {
				t.Fatalf("circuits = %v, want %v", b.Workers()[0].Circuits, want)
			}
			<-time.After(10 * time.Millisecond) // poll interval
		}
	}
	last, err := l.LastRevision(t.Context(), a.kv, ">")
	if most := 3 + uint64(time.Since(started)/renewInterval); err != nil || last > most {
		t.Errorf("announcements = %d, %v, want the first one, one for each change, and renewals", last, err)
	}
}
