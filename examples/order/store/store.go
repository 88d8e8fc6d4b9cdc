package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// maxBody bounds a request, in bytes.
const maxBody = 4 << 10

// request has the fields of all requests; each uses some of them.
type request struct {
	Key         string  `json:"-"`
	Number      string  `json:"-"` // path parameter: a reservation or a payment
	Article     string  `json:"article"`
	Reservation string  `json:"reservation"`
	Amount      float64 `json:"amount"`
	To          string  `json:"to"`
}

// store executes requests, each idempotency key once, and records them in its journal. The deeds in
// memory are those of the journal. It is safe for concurrent use.
type store struct {
	mu      sync.Mutex
	journal *journal
	deeds   []deed
	done    map[string]deed // by idempotency key
	open    map[string]bool // reservations and payments that were not undone
}

// newStore returns a store with the deeds of a journal.
func newStore(j *journal) (*store, error) {
	entries, err := j.entries()
	if err != nil {
		return nil, err
	}
	s := &store{journal: j, deeds: []deed{}, done: map[string]deed{}, open: map[string]bool{}}
	for _, e := range entries {
		s.note(e)
	}
	return s, nil
}

func (s *store) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /reservations", s.does(s.reserve))
	mux.HandleFunc("POST /reservations/{number}/release", s.does(s.undo("release")))
	mux.HandleFunc("POST /payments", s.does(s.charge))
	mux.HandleFunc("POST /payments/{number}/refund", s.does(s.undo("refund")))
	mux.HandleFunc("POST /parcels", s.does(s.ship))
	mux.HandleFunc("GET /journal", s.tells)
	mux.HandleFunc("GET /journal/{reservation}", s.tells)
	return mux
}

// does returns the handler of an action. It executes the action once per idempotency key, and returns
// the first result for a repeated request. It executes nothing for a client that has disconnected, so
// a cancelled order has no late effects. A refused action can be repeated.
func (s *store) does(it func(request) (deed, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked := request{Key: r.Header.Get("Idempotency-Key"), Number: r.PathValue("number")}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&asked); err != nil && r.ContentLength != 0 {
			http.Error(w, "the body must be a JSON object", http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if d, repeated := s.done[asked.Key]; repeated {
			answer(w, d)
			return
		}
		if r.Context().Err() != nil {
			return
		}
		d, err := it(asked)
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		e := entry{d, asked.Key}
		if err := s.journal.add(e); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		s.note(e)
		answer(w, d)
	}
}

// note adds an entry of the journal to the state in memory. The caller holds mu, or is newStore.
func (s *store) note(e entry) {
	s.deeds = append(s.deeds, e.deed)
	if e.Key != "" {
		s.done[e.Key] = e.deed
	}
	switch e.Did {
	case "reserve", "charge":
		s.open[e.Number] = true
	case "release", "refund":
		delete(s.open, e.Number)
	}
}

// tells serves GET /journal and GET /journal/{reservation}.
func (s *store) tells(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := []deed{}
	for _, d := range s.deeds {
		if strings.HasSuffix(d.Number, r.PathValue("reservation")) {
			told = append(told, d)
		}
	}
	answer(w, told)
	_, _ = io.WriteString(w, "\n") // for people who use curl
}

// reserve makes a reservation. Its number derives from the idempotency key, so that it does not
// depend on other orders.
func (s *store) reserve(asked request) (deed, error) {
	if asked.Article == "" {
		return deed{}, errors.New("which article?")
	}
	number := fmt.Sprintf("R-%s-%d", asked.Article, len(s.deeds)+1)
	if asked.Key != "" {
		number = fmt.Sprintf("R-%s-%.3x", asked.Article, sha256.Sum256([]byte(asked.Key)))
	}
	return deed{Did: "reserve", Number: number, Price: float64(10 * len(asked.Article))}, nil
}

// charge charges an open reservation.
func (s *store) charge(asked request) (deed, error) {
	if !s.open[asked.Reservation] || asked.Amount <= 0 {
		return deed{}, errors.New("there is no such reservation, or nothing to pay")
	}
	return deed{Did: "charge", Number: "P-" + asked.Reservation, Price: asked.Amount}, nil
}

// ship ships an open reservation. Moon is an address that always fails, to show compensations.
func (s *store) ship(asked request) (deed, error) {
	switch {
	case !s.open[asked.Reservation]:
		return deed{}, errors.New("there is no such reservation")
	case asked.To == "" || asked.To == "Moon":
		return deed{}, errors.New("no parcel goes there")
	}
	return deed{Did: "ship", Number: "S-" + asked.Reservation}, nil
}

// undo returns the action that releases a reservation or refunds a payment.
func (s *store) undo(name string) func(request) (deed, error) {
	return func(asked request) (deed, error) {
		if !s.open[asked.Number] {
			return deed{}, fmt.Errorf("there is nothing to %s", name)
		}
		return deed{Did: name, Number: asked.Number}, nil
	}
}

func answer(w http.ResponseWriter, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // fails only if the client is gone
}
