package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/tools"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 10

// store is where the store of examples/order is; empty = where it opens by itself.
type store string

type reservation struct {
	Reservation string `json:"reservation"`
}

// deed is something that the store has done.
type deed struct {
	Did    string  `json:"did"`
	Number string  `json:"number"`
	Price  float64 `json:"price,omitempty"`
}

// tools returns what the store does. It does a thing once for a key, so that a call which a crash
// cut short may be made again.
func (s store) tools() []tools.Tool {
	type article struct {
		Article string `json:"article"`
	}
	type charge struct {
		Reservation string  `json:"reservation"`
		Amount      float64 `json:"amount"`
	}
	type payment struct {
		Payment string `json:"payment"`
	}
	type parcel struct {
		Reservation string `json:"reservation"`
		To          string `json:"to"`
	}
	once := tools.Idempotent()
	return []tools.Tool{
		tools.Func("reserve", "Reserves an article.", func(ctx context.Context, in article) (deed, error) {
			return s.post(ctx, in, "reservations")
		}, once),
		tools.Func("release", "Takes a reservation back.", func(ctx context.Context, in reservation) (deed, error) {
			return s.post(ctx, nil, "reservations", in.Reservation, "release")
		}, once),
		tools.Func("charge", "Charges what was reserved.", func(ctx context.Context, in charge) (deed, error) {
			return s.post(ctx, in, "payments")
		}, once),
		tools.Func("refund", "Pays a payment back.", func(ctx context.Context, in payment) (deed, error) {
			return s.post(ctx, nil, "payments", in.Payment, "refund")
		}, once),
		tools.Func("ship", "Ships what was reserved.", func(ctx context.Context, in parcel) (deed, error) {
			return s.post(ctx, in, "parcels")
		}, once),
	}
}

// post has the store do something. What it says when it refuses is the error.
func (s store) post(ctx context.Context, body any, path ...string) (deed, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return deed{}, err
	}
	at, err := url.JoinPath(cmp.Or(string(s), "http://127.0.0.1:8091"), path...)
	if err != nil {
		return deed{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(raw))
	if err != nil {
		return deed{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", tools.IdempotencyKey(ctx))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return deed{}, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return deed{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return deed{}, fmt.Errorf("HTTP %s: %s", resp.Status, bytes.TrimSpace(answer))
	}
	var d deed
	return d, json.Unmarshal(answer, &d)
}
