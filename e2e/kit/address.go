package kit

import "sync"

// addresses are the members of <data>/addresses.json.
type addresses struct {
	API        string `json:"api"`
	Temporal   string `json:"temporal"`
	TemporalUI string `json:"temporalUi"`
	Namespace  string `json:"namespace"`
	NATS       string `json:"nats"`
	Metrics    string `json:"metrics"`
}

// threadSet has the threads on which tests start runs: each must have a workflow. It is safe for
// concurrent use.
type threadSet struct {
	mu  sync.Mutex
	ids map[string]bool
}

// Add adds a thread.
func (t *threadSet) Add(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ids[id] = true
}

// count returns the number of threads.
func (t *threadSet) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ids)
}

// newThreadSet returns an empty set.
func newThreadSet() *threadSet { return &threadSet{ids: map[string]bool{}} }
