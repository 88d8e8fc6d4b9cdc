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
)

// Endpoint is the address of an API that may be down for a while. It is safe for concurrent use.
type Endpoint struct {
	Threads *threadSet

	mu    sync.Mutex
	up    chan struct{} // closed while the api serves
	Addrs addresses

	// proxied is read-locked by each request that the proxy forwards.
	proxied sync.RWMutex
}

// NewEndpoint returns an endpoint that is down.
func NewEndpoint(seen *threadSet) *Endpoint {
	return &Endpoint{Threads: seen, up: make(chan struct{})}
}

// Up checks that the API is ready and makes the endpoint send requests there.
func (p *Endpoint) Up(ctx context.Context, where addresses) error {
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
		return fmt.Errorf("the process reports that it is ready, /readyz returns %s", resp.Status)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Addrs = where
	close(p.up)
	return nil
}

// Down makes requests wait for the next Up.
func (p *Endpoint) Down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up = make(chan struct{})
}

// Addresses waits until the API is up and returns the addresses.
func (p *Endpoint) Addresses(ctx context.Context) (addresses, error) {
	p.mu.Lock()
	up := p.up
	p.mu.Unlock()
	select {
	case <-up:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.Addrs, nil
	case <-ctx.Done():
		return addresses{}, fmt.Errorf("no api is up: %w", ctx.Err())
	}
}

// URL returns the URL of a path at the current API.
func (p *Endpoint) URL(path string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Addrs.API + path
}

// RunEcho runs the echo of a unique question and checks its answer. It returns an error if the
// stream broke.
func (p *Endpoint) RunEcho(t *testing.T, i int) error {
	question := Marked(fmt.Sprintf("%d?", i))
	f := p.NewFollower(t, NewInput("echo "+question))
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
	if f.Reconnects > 0 {
		return errors.New("the stream broke off")
	}
	return nil
}

// Publish publishes a definition and returns its revision.
func (p *Endpoint) Publish(t *testing.T, agent, definition string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.URL("/v1/agents/"+agent), strings.NewReader(definition))
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
		t.Fatalf("PUT: got %s %s (%v), want 200 or 201", resp.Status, body, err)
	}
	return strings.Trim(resp.Header.Get("ETag"), `"`)
}
