package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// effectTime is how long an effect takes. A kill may hit it before or after the server has noted it.
const effectTime = 20 * time.Millisecond

// effectServer is outside of all processes that are killed, and has the side effects of tools: POST /TOOL
// with an order. A request with a known Idempotency-Key has no further effect, as with payment
// providers. It is safe for concurrent use.
type effectServer struct {
	URL string

	mu       sync.Mutex
	effects  map[effect][]string // their idempotency keys, each once
	requests map[effect]int
}

// effect is what a tool does to an order.
type effect struct{ tool, order string }

// startEffectServer starts a server that ends with the test.
func startEffectServer(t *testing.T) *effectServer {
	t.Helper()
	s := &effectServer{effects: map[effect][]string{}, requests: map[effect]int{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// ServeHTTP implements http.Handler.
func (s *effectServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Order string `json:"order"`
	}
	key := r.Header.Get("Idempotency-Key")
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || key == "" {
		http.Error(w, "the request has no order or no key", http.StatusBadRequest)
		return
	}
	e := effect{tool: strings.TrimPrefix(r.URL.Path, "/"), order: in.Order}
	<-time.After(effectTime)
	s.note(e, key)
	<-time.After(effectTime)
	_, _ = fmt.Fprint(w, receipt(e)) // the client may have left
}

// note makes an effect, unless the key is known.
func (s *effectServer) note(e effect, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[e]++
	if !slices.Contains(s.effects[e], key) {
		s.effects[e] = append(s.effects[e], key)
	}
}

// receipt is the result of a tool. It is long, so that kills hit the answers about it.
func receipt(e effect) string {
	return fmt.Sprintf("%s of %s,%s done", e.tool, e.order, strings.Repeat(" well", 20))
}

// check checks that each tool had its effect on each order once, and that no two effects have the same key.
// It returns the number of requests that were repetitions.
func (s *effectServer) check(orders []string, tools ...string) (repeated int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[string]effect{}
	var errs []error
	for _, order := range orders {
		for _, tool := range tools {
			e := effect{tool, order}
			keys := s.effects[e]
			if len(keys) != 1 {
				errs = append(errs, fmt.Errorf("effects of %s on %s = %q, want one", tool, order, keys))
				continue
			}
			if other, isKnown := known[keys[0]]; isKnown {
				errs = append(errs, fmt.Errorf("%v and %v have the key %q, want one for each", e, other, keys[0]))
			}
			known[keys[0]] = e
			repeated += s.requests[e] - 1
		}
	}
	return repeated, errors.Join(errs...)
}
