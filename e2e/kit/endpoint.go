package kit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Endpoint is where an api is reached, which at times is nowhere. It is safe for concurrent use.
type Endpoint struct {
	Threads *threads

	mu    sync.Mutex
	up    chan struct{} // closed while the api serves
	Where addresses

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

func NewEndpoint(seen *threads) *Endpoint {
	return &Endpoint{Threads: seen, up: make(chan struct{})}
}

// Serves checks that the api is ready and lets requests go there.
func (p *Endpoint) Serves(ctx context.Context, where addresses) error {
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
	p.Where = where
	close(p.up)
	return nil
}

// Down lets requests wait until the api serves again.
func (p *Endpoint) Down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up = make(chan struct{})
}

// Addresses waits until the api serves and tells where.
func (p *Endpoint) Addresses(ctx context.Context) (addresses, error) {
	p.mu.Lock()
	up := p.up
	p.mu.Unlock()
	select {
	case <-up:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.Where, nil
	case <-ctx.Done():
		return addresses{}, fmt.Errorf("no api is up: %w", ctx.Err())
	}
}

// Url returns an address of the api that runs now.
func (p *Endpoint) Url(path string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Where.API + path
}

// threads are those on which tests have begun runs: each has a workflow. It is safe for concurrent
// use.
type threads struct {
	mu  sync.Mutex
	ids map[string]bool
}

func newThreads() *threads { return &threads{ids: map[string]bool{}} }

func (t *threads) Use(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ids[id] = true
}

func (t *threads) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ids)
}

// Ready waits until an api says what it has to say about its readiness.
func Ready(t *testing.T, g *Gateway, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	for {
		resp, err := g.Get(ctx, "/readyz", "")
		if err != nil {
			t.Fatalf("/readyz does not become %d: %v", want, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == want {
			return
		}
		<-time.After(20 * time.Millisecond) // between two looks
	}
}

// Echo runs a run whose answer only it can have.
func (p *Endpoint) Echo(t *testing.T, i int) error {
	question := Say(fmt.Sprintf("%d?", i))
	f := p.Reader(t, NewInput("echo "+question))
	if err := f.Read(); err != nil {
		return fmt.Errorf("run %d: %w", i, err)
	}
	var answer string
	for _, e := range f.Events {
		if e.Type == "TEXT_MESSAGE_CONTENT" {
			answer += e.Member("delta")
		}
	}
	if last := f.Events[len(f.Events)-1]; last.Type != "RUN_FINISHED" || answer != "You said: "+question {
		return fmt.Errorf("run %d: %q, %s", i, answer, last.Data)
	}
	if f.Comebacks > 0 {
		return errors.New("the stream broke off")
	}
	return nil
}

// Publish puts a definition and returns the revision.
func (p *Endpoint) Publish(t *testing.T, agent, definition string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.Url("/v1/agents/"+agent), strings.NewReader(definition))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode > http.StatusCreated {
		t.Fatalf("PUT: %s %s (%v)", resp.Status, body, err)
	}
	return strings.Trim(resp.Header.Get("ETag"), `"`)
}
