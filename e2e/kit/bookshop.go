package kit

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

// Bookshop is the shop program of the refund example.
type Bookshop struct{ URL string }

// StartBookshop starts the shop of the refund example, which is stopped when the test ends.
func StartBookshop(t *testing.T) *Bookshop {
	t.Helper()
	var s Bookshop
	var said Output
	p, err := Launch(t.Context(), exec.Command(BuildExample(t, "refund/shop"), "-addr", "127.0.0.1:0"), &said, func(line []byte) (ok bool) {
		s.URL, ok = strings.CutPrefix(string(line), "The shop is open: ")
		return ok
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &s
}

// Refunds returns the amounts that the shop has paid back.
func (s *Bookshop) Refunds(t *testing.T) (amounts []float64) {
	t.Helper()
	resp, err := http.Get(s.URL + "/refunds")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var refunds []struct {
		Amount float64 `json:"amount"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&refunds); err != nil {
		t.Fatal(err)
	}
	for _, r := range refunds {
		amounts = append(amounts, r.Amount)
	}
	return amounts
}
