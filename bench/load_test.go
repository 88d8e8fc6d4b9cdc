package main

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

func TestLoadKeepsTheIntervalOfWaves(t *testing.T) {
	t.Parallel()
	var (
		mu    sync.Mutex
		begun []time.Time
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		begun = append(begun, time.Now())
		mu.Unlock()
		complete(w, r)
	}))
	defer server.Close()
	direct, err := startDirect(t.Context(), &environment{model: server.URL + "/v1"})
	if err != nil {
		t.Fatal(err)
	}
	const waves = 3
	ph := phase{pace: instant, concurrency: 4, every: 50 * time.Millisecond}
	started := time.Now()
	s, err := (&load{target: direct.target}).drive(t.Context(), ph, waves*ph.concurrency)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.first) != waves*ph.concurrency || len(begun) != len(s.first) {
		t.Fatalf("%d runs and %d requests, want %d", len(s.first), len(begun), waves*ph.concurrency)
	}
	for i, at := range begun {
		if early := ph.every * time.Duration(i/ph.concurrency); at.Sub(started) < early {
			t.Errorf("request %d began after %s, want at least %s", i, at.Sub(started), early)
		}
	}
}
