package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/perdure/perdure/tools"
)

// Tools returns the product's own, and two that do nothing but tell the test that they run.
func Tools() []tools.Tool {
	return append(ownTools(), observed("observe", tools.Idempotent()), observed("charge"))
}

type observation struct {
	Play string `json:"play"`
	Note string `json:"note"`
}

func observed(name string, opts ...tools.Option) tools.Tool {
	return tools.Func(name, "Tells the stage.", func(ctx context.Context, in observation) (string, error) {
		body, err := json.Marshal(in)
		if err != nil {
			return "", err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("CHAOS_STAGE")+"/tools/"+name, bytes.NewReader(body))
		if err != nil {
			return "", err
		}
		req.Header.Set("Idempotency-Key", tools.IdempotencyKey(ctx))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return "", fmt.Errorf("the stage says %s", resp.Status)
		}
		answer, err := io.ReadAll(resp.Body)
		return string(answer), err
	}, opts...)
}
