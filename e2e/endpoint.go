package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
)

// endpoint is where an api is reached, which at times is nowhere. It is safe for concurrent use.
type endpoint struct {
	threads *threads

	mu    sync.Mutex
	up    chan struct{} // closed while the api serves
	where addresses

	// proxied is held for reading by each request that the proxy forwards.
	proxied sync.RWMutex
}

// addresses is what <data>/addresses.json holds.
type addresses struct {
	API       string `json:"api"`
	Temporal  string `json:"temporal"`
	Namespace string `json:"namespace"`
	NATS      string `json:"nats"`
}

func newEndpoint(seen *threads) *endpoint {
	return &endpoint{threads: seen, up: make(chan struct{})}
}

// serves checks that the api is ready and lets requests go there.
func (p *endpoint) serves(ctx context.Context, where addresses) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where.API+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the process says that it is ready, /readyz says %s", resp.Status)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.where = where
	close(p.up)
	return nil
}

// down lets requests wait until the api serves again.
func (p *endpoint) down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up = make(chan struct{})
}

// addresses waits until the api serves and tells where.
func (p *endpoint) addresses(ctx context.Context) (addresses, error) {
	p.mu.Lock()
	up := p.up
	p.mu.Unlock()
	select {
	case <-up:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.where, nil
	case <-ctx.Done():
		return addresses{}, fmt.Errorf("no api is up: %w", ctx.Err())
	}
}

// url returns an address of the api that runs now.
func (p *endpoint) url(path string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.where.API + path
}

// threads are those on which tests have begun runs: each has a workflow. It is safe for concurrent
// use.
type threads struct {
	mu  sync.Mutex
	ids map[string]bool
}

func newThreads() *threads { return &threads{ids: map[string]bool{}} }

func (t *threads) use(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ids[id] = true
}

func (t *threads) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ids)
}
