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

// maxAnswer bounds a response of the store, in bytes.
const maxAnswer = 64 << 10

// store is the URL of the store of examples/order; "" = its default address.
type store string

type reservation struct {
	Reservation string `json:"reservation"`
}

// deed is the result of a request to the store.
type deed struct {
	Did    string  `json:"did"`
	Number string  `json:"number"`
	Price  float64 `json:"price,omitempty"`
}

// tools returns the tools of the store. They are idempotent, because the store executes each
// idempotency key once. So Perdure may repeat a call after the death of its worker.
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

// post sends a request with the idempotency key of the current tool call. The body of a refusal
// becomes the error that the model or the pipeline receives.
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
