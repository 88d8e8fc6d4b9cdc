package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// open opens a store with the journal in a file, until closes is called.
func open(t *testing.T, file string) (routes http.Handler, closes func()) {
	t.Helper()
	j, err := openJournal(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newStore(j)
	if err != nil {
		t.Fatal(err)
	}
	return s.routes(), func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestJournalIsOutsideDataDirectory: a store that is opened before perdure dev does not create
// perdure dev's data directory, which has to be empty or missing.
func TestJournalIsOutsideDataDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	_, closes := open(t, defaultJournal)
	closes()
	if _, err := os.Stat(".perdure"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("data directory of perdure dev: got %v, want none", err)
	}
}

// ask sends a request with a key, and returns the status and the answer.
func ask(t *testing.T, routes http.Handler, key, path, body string) (int, deed) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	routes.ServeHTTP(w, r)
	var d deed
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
	}
	return w.Code, d
}

// journalOf returns the operations of a journal, separated by spaces.
func journalOf(t *testing.T, routes http.Handler, path string) (did string) {
	t.Helper()
	w := httptest.NewRecorder()
	routes.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	var deeds []deed
	if err := json.Unmarshal(w.Body.Bytes(), &deeds); err != nil {
		t.Fatal(err)
	}
	for _, d := range deeds {
		did += d.Did + " "
	}
	return strings.TrimSpace(did)
}

// TestStoreKeepsCompletedOperations: a store that was killed keeps its completed operations, and
// repeats none.
func TestStoreKeepsCompletedOperations(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "data", "store.jsonl")
	routes, closes := open(t, file)
	_, reserved := ask(t, routes, "run/1", "/reservations", `{"article":"lamp"}`)
	_, other := ask(t, routes, "run/2", "/reservations", `{"article":"lamp"}`)
	_, charged := ask(t, routes, "run/3", "/payments", `{"reservation":"`+reserved.Number+`","amount":40}`)
	if reserved.Number == other.Number || reserved.Price != 40 || charged.Number != "P-"+reserved.Number {
		t.Errorf("operations = %+v, %+v and %+v, want two reservations and one payment", reserved, other, charged)
	}
	closes()

	routes, closes = open(t, file)
	defer closes()
	if _, again := ask(t, routes, "run/1", "/reservations", `{"article":"lamp"}`); again != reserved {
		t.Errorf("repeated request: got %+v, want %+v", again, reserved)
	}
	for _, c := range []struct {
		key, path  string
		wantStatus int
	}{
		{"run/4", "/payments/" + charged.Number + "/refund", http.StatusOK},
		{"run/5", "/payments/" + charged.Number + "/refund", http.StatusConflict},
		{"run/6", "/reservations/" + reserved.Number + "/release", http.StatusOK},
		{"run/6", "/reservations/" + reserved.Number + "/release", http.StatusOK},
	} {
		if status, _ := ask(t, routes, c.key, c.path, ""); status != c.wantStatus {
			t.Errorf("%s, as %s: %d, want %d", c.path, c.key, status, c.wantStatus)
		}
	}
	if did := journalOf(t, routes, "/journal"); did != "reserve reserve charge refund release" {
		t.Errorf("journal = %s, want %s", did, "reserve reserve charge refund release")
	}
	if did := journalOf(t, routes, "/journal/"+reserved.Number); did != "reserve charge refund release" {
		t.Errorf("journal of the first reservation = %s, want %s", did, "reserve charge refund release")
	}
}

// TestCancelledRequestsDoNothing: a request whose client has disconnected does nothing.
func TestCancelledRequestsDoNothing(t *testing.T) {
	t.Parallel()
	routes, closes := open(t, filepath.Join(t.TempDir(), "store.jsonl"))
	defer closes()
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	r := httptest.NewRequestWithContext(gone, http.MethodPost, "/reservations", strings.NewReader(`{"article":"lamp"}`))
	routes.ServeHTTP(httptest.NewRecorder(), r)
	if did := journalOf(t, routes, "/journal"); did != "" {
		t.Errorf("operations: got %s, want none", did)
	}
}

// TestNumbersComeFromKeys: an order has the same numbers whatever was ordered before it.
func TestNumbersComeFromKeys(t *testing.T) {
	t.Parallel()
	routes, closes := open(t, filepath.Join(t.TempDir(), "a"))
	defer closes()
	_, want := ask(t, routes, "key", "/reservations", `{"article":"lamp"}`)
	routes, closes = open(t, filepath.Join(t.TempDir(), "b"))
	defer closes()
	ask(t, routes, "another", "/reservations", `{"article":"lamp"}`)
	if _, got := ask(t, routes, "key", "/reservations", `{"article":"lamp"}`); got != want {
		t.Errorf("after another order: got %+v, want %+v", got, want)
	}
}
