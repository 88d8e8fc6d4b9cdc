package events

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// TestEventsSurviveKills: runs wait for events, which arrive in random order, some twice, some before
// the run, while the process is killed. Each run continues once, with its event. With -chaos these are
// 1,000 runs and 10,000 events; CHAOS_SEED chooses the order.
func TestEventsSurviveKills(t *testing.T) {
	runs, others, kills := 30, 120, 2
	if *kit.Chaos {
		runs, others, kills = 1000, 8500, 10
	}
	seed := kit.ChaosSeed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	p := kit.SetupWith(t, definitions)

	var steps []func() error
	inputs := make([]kit.Input, runs)
	for i := range runs {
		inputs[i] = kit.NewInput("go")
		inputs[i].State = json.RawMessage(fmt.Sprintf(`{"order":%d,"timeout":"1h"}`, i))
		start := func() error { return post(p.Endpoint, "/v1/agents/order/runs", "application/json", inputs[i]) }
		send := func() error {
			return post(p.Endpoint, "/v1/events", "application/cloudevents+json", paid(fmt.Sprint("e", i), i))
		}
		steps = append(steps, start, send)
		if i%2 == 0 { // sent twice
			steps = append(steps, send)
		}
	}
	for i := range others {
		steps = append(steps, func() error {
			return post(p.Endpoint, "/v1/events", "application/cloudevents+json", paid(fmt.Sprint("o", i), runs+i))
		})
	}
	random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	killAt := map[int]bool{}
	for range kills {
		killAt[random.IntN(len(steps))] = true
	}
	next := make(chan func() error)
	var working sync.WaitGroup
	for range 16 {
		working.Go(func() {
			for step := range next {
				for late := time.Now().Add(kit.WaitTimeout); ; {
					err := step()
					if err == nil {
						break
					}
					if time.Now().After(late) {
						t.Error(err)
						break
					}
				}
			}
		})
	}
	for i, step := range steps {
		if killAt[i] {
			p.Restart(t)
		}
		next <- step
	}
	close(next)
	working.Wait()
	for i, in := range inputs {
		f := p.NewFollower(t, in)
		f.AttachPath = "/v1/threads/" + in.ThreadID + "/events"
		f.UntilSuccess(t)
		if s := readState(t, p.Endpoint, in); s.Event != fmt.Sprint("e", i) || s.Amount != 5 {
			t.Errorf("run %d: state = %+v, want its event", i, s)
		}
		if messages := p.MessagesOf(t, in.ThreadID); len(messages) != 3 { // of the user, the call and its only result
			t.Errorf("run %d: messages = %+v, want three", i, messages)
		}
	}
}

// paid returns an event for an order.
func paid(id string, order int) string {
	return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/shop","type":"payment.received","data":{"orderId":%d,"amount":5}}`, id, order)
}

// post sends a request, and reads the answer to its end. The error is nil if the server has taken it: a
// run that is known already is taken.
func post(p *kit.Endpoint, path, kind string, body any) error {
	text, ok := body.(string)
	if !ok {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		text = string(raw)
	}
	resp, err := http.Post(p.URL(path), kind, strings.NewReader(text))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // the stream is not read
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	return nil
}
