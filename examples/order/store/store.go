package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// maxBody bounds a request, in bytes.
const maxBody = 4 << 10

// request has what any of the requests says.
type request struct {
	Article     string  `json:"article"`
	Reservation string  `json:"reservation"`
	Amount      float64 `json:"amount"`
	To          string  `json:"to"`
}

// deed is something that was done.
type deed struct {
	Did    string  `json:"did"`
	Number string  `json:"number"` // of what it was done to
	Price  float64 `json:"price,omitempty"`
}

// store is safe for concurrent use.
type store struct {
	mu      sync.Mutex
	journal []deed
	done    map[string]deed // by idempotency key
	open    map[string]bool // reservations and payments that stand
}

func newStore() *store {
	return &store{journal: []deed{}, done: map[string]deed{}, open: map[string]bool{}}
}

func (s *store) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /reservations", s.does(s.reserve))
	mux.HandleFunc("POST /reservations/{number}/release", s.does(s.undo("release")))
	mux.HandleFunc("POST /payments", s.does(s.charge))
	mux.HandleFunc("POST /payments/{number}/refund", s.does(s.undo("refund")))
	mux.HandleFunc("POST /parcels", s.does(s.ship))
	mux.HandleFunc("GET /journal", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		answer(w, s.journal)
	})
	return mux
}

// does does something once for a key, and notes it. What is refused was not done.
func (s *store) does(it func(number string, asked request) (deed, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked request
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&asked); err != nil && r.ContentLength != 0 {
			http.Error(w, "the body must be a JSON object", http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		d, repeated := s.done[key]
		if !repeated || key == "" {
			var err error
			if d, err = it(r.PathValue("number"), asked); err != nil {
				http.Error(w, err.Error(), http.StatusConflict)
				return
			}
			s.done[key] = d
			s.journal = append(s.journal, d)
		}
		answer(w, d)
	}
}

func (s *store) reserve(_ string, asked request) (deed, error) {
	if asked.Article == "" {
		return deed{}, errors.New("which article?")
	}
	d := deed{Did: "reserve", Number: fmt.Sprintf("R-%s-%d", asked.Article, len(s.journal)+1), Price: float64(10 * len(asked.Article))}
	s.open[d.Number] = true
	return d, nil
}

func (s *store) charge(_ string, asked request) (deed, error) {
	if !s.open[asked.Reservation] || asked.Amount <= 0 {
		return deed{}, errors.New("there is no such reservation, or nothing to pay")
	}
	d := deed{Did: "charge", Number: "P-" + asked.Reservation, Price: asked.Amount}
	s.open[d.Number] = true
	return d, nil
}

func (s *store) ship(_ string, asked request) (deed, error) {
	switch {
	case !s.open[asked.Reservation]:
		return deed{}, errors.New("there is no such reservation")
	case asked.To == "" || asked.To == "Moon":
		return deed{}, errors.New("no parcel goes there")
	}
	return deed{Did: "ship", Number: "S-" + asked.Reservation}, nil
}

// undo closes what was opened.
func (s *store) undo(name string) func(string, request) (deed, error) {
	return func(number string, _ request) (deed, error) {
		if !s.open[number] {
			return deed{}, fmt.Errorf("there is nothing to %s", name)
		}
		delete(s.open, number)
		return deed{Did: name, Number: number}, nil
	}
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // who has hung up needs no answer
}
