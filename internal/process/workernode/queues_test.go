package workernode

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/tools"
)

// floor is a source whose tools have the given task queues. A tool without one is on the queue of
// all workers.
type floor struct {
	name, queue string
	err         error
}

func (f floor) Name() string { return f.name }
func (floor) Origin() string { return "here" }
func (f floor) Offers() ([]tools.Offer, error) {
	sweep, err := tools.Guard(sleepy(f.name+"_sweep", f.queue))
	return []tools.Offer{{Name: "sweep", Tool: sweep}}, errors.Join(err, f.err)
}

// sleepy returns a tool on a task queue.
func sleepy(name, queue string) tools.Tool {
	return tools.Func(name, "sleeps", func(context.Context, struct{}) (string, error) { return "", nil }, tools.TaskQueue(queue))
}

// TestOffers: a worker announces its own tools, and for servers the descriptions that other workers
// need.
func TestOffers(t *testing.T) {
	t.Parallel()
	r, err := tools.NewRegistry(sleepy("clock", ""), sleepy("drawer", "till"), sleepy("lamp", "attic"), sleepy("main", runs.TaskQueue))
	if err != nil {
		t.Fatal(err)
	}
	if r, err = r.With(floor{name: "shop", queue: "till"}, floor{name: "bar", queue: "attic"}, floor{name: "all"}, floor{"away", "till", errors.New("unknown yet")}); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		queues  Queues
		want    []string
		wantAll []string
	}{
		"main":       {Queues{}, []string{"clock", "main"}, []string{"perdure"}},
		"both":       {Queues{Tools: []string{"till"}}, []string{"clock", "drawer", "main", "shop/sweep"}, []string{"perdure", "till"}},
		"tools only": {Queues{Tools: []string{"attic", "till"}, ToolsOnly: true}, []string{"drawer", "lamp", "bar/sweep", "shop/sweep"}, []string{"attic", "till"}},
	} {
		var got []string
		for _, o := range tt.queues.offers(r) {
			if o.Server == "" {
				got = append(got, o.Spec.Name)
			} else {
				got = append(got, o.Server+"/"+o.Own)
			}
		}
		if !slices.Equal(got, tt.want) || !slices.Equal(tt.queues.All(), tt.wantAll) {
			t.Errorf("%s: got %q of %q, want %q of %q", name, got, tt.queues.All(), tt.want, tt.wantAll)
		}
	}
}

// TestMainTaskQueueServesAllActivities: the queue of all workers also serves activities other
// than tools.
func TestMainTaskQueueServesAllActivities(t *testing.T) {
	t.Parallel()
	if err := (Queues{Tools: []string{runs.TaskQueue}, ToolsOnly: true}).check(); err == nil {
		t.Error("check of the main task queue with tools only: got no error, want one")
	}
	if err := (Queues{Tools: []string{runs.TaskQueue, "till"}}).check(); err != nil {
		t.Error(err)
	}
}
