package docs

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestExampleDesk: the desk example hands customers over to the right agent, and asks for approval
// where it must.
func TestExampleDesk(t *testing.T) {
	t.Parallel()
	p := kit.StartExample(t, "desk")
	checkDesk(t, p.Endpoint)
	p.CheckRecordedRuns(t, "desk")
}

// checkDesk checks the answers of the example desk.
func checkDesk(t *testing.T, p *kit.Endpoint) {
	t.Helper()
	for text, want := range map[string]string{
		"My bill of 40 is wrong.":  "I am a script. The fee in question is 4.",
		"My bill of 120 is wrong.": "I am a script. The fee in question is 12.",
		"My kettle is broken.":     "I am a script. Have you turned it off and on again?",
		"A nice shop!":             "I am a script. How nice of you to say so.",
	} {
		in := kit.NewInput(text)
		f := p.FollowAgent(t, "/v1/agents/desk/runs", in)
		f.Finish(t)
		if strings.Contains(text, "120") {
			f.Approve(t)
		}
		messages := kit.ShownMessages(t, in.Messages, f.Events)
		if last := messages[len(messages)-1]; last.Content != want {
			t.Errorf("answer to %q = %q, want %q", text, last.Content, want)
		}
	}
}

// orderStore is the store program of the order example.
type orderStore struct {
	file, journal string
	url           string
	said          kit.Output
	process       *kit.Process
}

// startOrderStore starts the store of the example order.
func startOrderStore(t *testing.T) *orderStore {
	t.Helper()
	s := &orderStore{file: kit.BuildExample(t, "order/store"), journal: filepath.Join(t.TempDir(), "store.jsonl")}
	s.start(t, "127.0.0.1:0")
	t.Cleanup(func() {
		if err := s.process.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// start starts the program of the store.
func (s *orderStore) start(t *testing.T, addr string) {
	t.Helper()
	var err error
	if s.process, err = kit.Launch(t.Context(), exec.Command(s.file, "-addr", addr, "-journal", s.journal), &s.said, func(line []byte) (ok bool) {
		s.url, ok = strings.CutPrefix(string(line), "The store is open: ")
		return ok
	}); err != nil {
		t.Fatal(err)
	}
}

// restart kills the store and starts it at the same address.
func (s *orderStore) restart(t *testing.T) {
	t.Helper()
	s.process.Kill()
	s.start(t, strings.TrimPrefix(s.url, "http://"))
}

// effects returns what the store has done, in order.
func (s *orderStore) effects(t *testing.T) (effects []string) {
	t.Helper()
	resp, err := http.Get(s.url + "/journal")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var journal []struct{ Did string }
	if err := json.NewDecoder(resp.Body).Decode(&journal); err != nil {
		t.Fatal(err)
	}
	for _, d := range journal {
		effects = append(effects, d.Did)
	}
	return effects
}

// TestExampleOrder: the order example does every step once or, if it fails, compensates in reverse
// order. It does so wherever it is killed together with its store.
func TestExampleOrder(t *testing.T) {
	t.Parallel()
	s := startOrderStore(t)
	p := kit.StartExample(t, "order", "http://127.0.0.1:8091", s.url)
	checkOrder(t, p.Endpoint, s, 4, func(t *testing.T) {
		p.Kill()
		s.restart(t)
		p.Start(t)
	})
	p.CheckRecordedRuns(t, "order")
}

// checkOrder checks the runs of the example order, and calls restart at most kills times in each.
func checkOrder(t *testing.T, p *kit.Endpoint, s *orderStore, kills int, restart func(*testing.T)) {
	t.Helper()
	before := len(s.effects(t))
	for _, c := range []struct {
		prompt      string
		killsAt     []string
		wantJournal string
	}{
		{"Please send a lamp to Lisbon.", nil, "reserve charge ship"},
		{"Please send a lamp to Lisbon.", []string{"wanted/model", "reserved", "charged", "shipped"}, "reserve charge ship"},
		{"Please send a lamp to Moon.", nil, "reserve charge refund release"},
		{"Please send a lamp to Moon.", []string{"charged", "shipped", "charged/compensate", "reserved/compensate"}, "reserve charge refund release"},
	} {
		in := kit.NewInput(c.prompt)
		f := p.FollowAgent(t, "/v1/agents/order/runs", in)
		for _, step := range c.killsAt[:min(kills, len(c.killsAt))] {
			f.Until(t, func(e kit.Event) bool { return e.Type == "STEP_STARTED" && e.Member("stepName") == step })
			restart(t)
		}
		f.Until(t, kit.Event.Terminal)
		all := s.effects(t)
		if did := strings.Join(all[before:], " "); did != c.wantJournal {
			t.Errorf("%s, killed at %q: the store has done %s, want %s", c.prompt, c.killsAt, did, c.wantJournal)
		}
		before = len(all)
		last := f.Events[len(f.Events)-1]
		if strings.Contains(c.prompt, "Moon") {
			if last.Type != "RUN_ERROR" || last.Member("code") != "tool_failed" {
				t.Errorf("%s: end of the run = %s, want tool_failed", c.prompt, last.Data)
			}
			continue
		}
		messages := kit.ShownMessages(t, in.Messages, f.Events, kit.RetractWarning)
		if text := messages[len(messages)-1].Content; !strings.HasPrefix(text, "I am a script. Parcel S-R-lamp-") || !strings.HasSuffix(text, "is on its way to Lisbon.") {
			t.Errorf("%s: answer = %q, want the parcel", c.prompt, text)
		}
	}
}

// TestPipelinesOfOtherModule: the same agents in Go, in their own module with tools that are Go
// functions, have the same outcome as the files, and the pages show them as well. The tests of the
// files kill at every step.
func TestPipelinesOfOtherModule(t *testing.T) {
	t.Parallel()
	if err := kit.Execute(filepath.Join("..", "examples", "pipelines"), "go", "test", "."); err != nil {
		t.Error(err)
	}
	s := startOrderStore(t)
	w := startOwnWorker(t, "pipelines", []string{"--agents", filepath.Join("..", "examples", "pipelines", "scripts")}, []string{"STORE_URL=" + s.url})
	checkDesk(t, w.Endpoint)
	checkOrder(t, w.Endpoint, s, 1, func(t *testing.T) {
		w.worker.Kill()
		s.restart(t)
		w.startWorker(t)
	})
	checkReport(t, w.Endpoint, 1, w.restartWorker)
	for _, page := range []string{"report", "desk", "triage", "order"} {
		w.CheckRecordedRuns(t, page)
	}
}
