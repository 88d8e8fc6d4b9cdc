package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// maxBody bounds a request, in bytes.
const maxBody = 4 << 10

type order struct {
	ID    string  `json:"id"`
	Title string  `json:"title"`
	Paid  float64 `json:"paid"`
}

type refund struct {
	Number  int     `json:"number"`
	OrderID string  `json:"orderId"`
	Amount  float64 `json:"amount"`
	key     string
}

// shop has fixed orders, and the refunds of this process. It is safe for concurrent use.
type shop struct {
	orders map[string]order

	mu      sync.Mutex
	refunds []refund
}

func newShop() *shop {
	return &shop{refunds: []refund{}, orders: map[string]order{
		"A-1001": {"A-1001", "A World Atlas of Coffee", 80},
		"A-1002": {"A-1002", "A Pocket Guide to Tea", 12.5},
	}}
}

func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", s.showOrder)
	mux.HandleFunc("POST /orders/{id}/refunds", s.refundOrder)
	mux.HandleFunc("GET /refunds", s.listRefunds)
	return mux
}

// showOrder serves GET /orders/{id}.
func (s *shop) showOrder(w http.ResponseWriter, r *http.Request) {
	o, ok := s.orders[r.PathValue("id")]
	if !ok {
		http.Error(w, "there is no such order", http.StatusNotFound)
		return
	}
	answer(w, o)
}

// refundOrder serves POST /orders/{id}/refunds. The model receives the texts of its errors.
func (s *shop) refundOrder(w http.ResponseWriter, r *http.Request) {
	o, ok := s.orders[r.PathValue("id")]
	if !ok {
		http.Error(w, "there is no such order", http.StatusNotFound)
		return
	}
	var asked struct {
		Amount float64 `json:"amount"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&asked); err != nil || asked.Amount <= 0 {
		http.Error(w, "amount must be a number above zero", http.StatusBadRequest)
		return
	}
	paid, err := s.payBack(o, asked.Amount, r.Header.Get("Idempotency-Key"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	answer(w, paid)
}

// payBack refunds an amount once per idempotency key: a repeated call returns the first refund. The
// refunds of an order never exceed its price. Every call with an empty key is a new refund.
func (s *shop) payBack(o order, amount float64, key string) (refund, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.refunds, func(r refund) bool { return key != "" && r.key == key }); i >= 0 {
		return s.refunds[i], nil
	}
	left := o.Paid
	for _, r := range s.refunds {
		if r.OrderID == o.ID {
			left -= r.Amount
		}
	}
	if amount > left {
		return refund{}, fmt.Errorf("only %.2f of the order is left to refund", left)
	}
	paid := refund{Number: len(s.refunds) + 1, OrderID: o.ID, Amount: amount, key: key}
	s.refunds = append(s.refunds, paid)
	return paid, nil
}

// listRefunds serves GET /refunds.
func (s *shop) listRefunds(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer(w, s.refunds)
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // fails only if the client is gone
}
