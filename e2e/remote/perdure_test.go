package remote

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestPerdureBehindPerdure: a Perdure is the remote agent of another one. Whichever of the two is
// killed, and whenever, the transcript is exact, and the model is asked once for each run that the
// Perdure behind begins, and once more if that Perdure was killed while the model answered.
func TestPerdureBehindPerdure(t *testing.T) {
	for _, retry := range []string{"restart", "resume"} {
		for _, victim := range []string{"front", "back"} {
			t.Run(retry+"/"+victim, func(t *testing.T) {
				t.Parallel()
				checkChain(t, retry, victim)
			})
		}
	}
}

// chainRuns is the number of runs of each chain, in each of which one process is killed.
const chainRuns = 20

// checkChain runs an agent through two processes, and kills one of them in each run.
func checkChain(t *testing.T, retry, victim string) {
	t.Helper()
	back := kit.NewPerdure(filepath.Join(t.TempDir(), "back"), kit.SharedModel)
	back.Addr = kit.FreeAddress(t)
	back.InspectAtEnd(t)
	back.Start(t)
	front := startWith(t, fmt.Sprintf("name: chain\nremote: {url: \"http://%s/v1/agents/assistant/runs\", retry: %s}\n", back.Addr, retry))
	random := rand.New(rand.NewPCG(1, uint64(len(retry)+len(victim)))) //nolint:gosec // the moments of the kills are no secret
	for range chainRuns {
		question, answer := kit.Marked("Who is there?"), kit.LongText(300)
		kit.SharedModel.Answer(t, kit.Fixture{Match: kit.Match{UserMessage: question}, Response: kit.Response{Content: answer}, Latency: 5, ChunkSize: 20})
		in := kit.NewInput(question)
		f := front.FollowAgent(t, "/v1/agents/chain/runs", in)
		for n := random.IntN(18); n > 0; n-- {
			if e, err := f.Next(); err != nil || e.Terminal() {
				break
			}
		}
		map[string]*kit.Perdure{"front": front, "back": back}[victim].Restart(t)
		if len(f.Events) == 0 || !f.Events[len(f.Events)-1].Terminal() {
			f.Until(t, kit.Event.Terminal)
		}
		f.Cut()
		wantThread(t, front, f, append(slices.Clone(in.Messages), kit.AssistantMessage(answer)), map[string]any{})
		if n := len(kit.SharedModel.Calls(t, question)); n != 1 && (victim == "front" || n > 2) {
			t.Errorf("the model was asked %d times", n)
		}
	}
}
