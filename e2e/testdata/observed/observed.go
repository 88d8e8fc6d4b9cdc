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

// Tools returns the built-in tools and two tools that report their calls to the test.
func Tools() []tools.Tool {
	return append(ownTools(), observed("observe", tools.Idempotent()), observed("charge"))
}

type observation struct {
	Script string `json:"script"`
	Note   string `json:"note"`
}

func observed(name string, opts ...tools.Option) tools.Tool {
	return tools.Func(name, "Reports the call to the test.", func(ctx context.Context, in observation) (string, error) {
		body, err := json.Marshal(in)
		if err != nil {
			return "", err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("CHAOS_MODEL")+"/tools/"+name, bytes.NewReader(body))
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
			return "", fmt.Errorf("the test answers %s", resp.Status)
		}
		answer, err := io.ReadAll(resp.Body)
		return string(answer), err
	}, opts...)
}
