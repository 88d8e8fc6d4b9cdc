package budget

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/agents"
)

// pointer returns a pointer to a number.
func pointer(v int64) *int64 { return &v }

func TestCost(t *testing.T) {
	t.Parallel()
	f, err := parse([]byte(`
currency: USD
prices:
  - {model: openai/gpt-5-mini, input: 0.25, output: 2, cachedInput: 0.025}
  - {model: "openai*/gpt-*", input: 1, output: 10, cacheWrite: 2, reasoning: 5}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		model     string
		tokens    Tokens
		want      agents.Money
		wantKnown bool
	}{
		{"openai/gpt-5-mini", Tokens{Input: pointer(1_000_000), Output: pointer(1_000_000)}, 2_250_000, true},
		{"openai/gpt-5-mini", Tokens{Input: pointer(1_000_000), CachedInput: pointer(600_000), Output: pointer(0)}, 115_000, true},
		{"openai/gpt-5-mini", Tokens{Input: pointer(10), CachedInput: pointer(600)}, 0, true},
		{"openai/gpt-5-mini", Tokens{Input: pointer(3)}, 1, true},
		{"openai-responses/gpt-5", Tokens{Input: pointer(100), CacheWrite: pointer(50), Output: pointer(20), Reasoning: pointer(10)}, 50 + 100 + 100 + 50, true},
		{"openai-responses/gpt-5", Tokens{Total: pointer(7)}, 70, true},
		{"openai/o3", Tokens{Input: pointer(1)}, 0, false},
		{"anthropic/gpt-x", Tokens{Input: pointer(1)}, 0, false},
	} {
		p, known := f.Price(tt.model)
		if got := p.Cost(tt.tokens); known != tt.wantKnown || got != tt.want {
			t.Errorf("%s: %d, %t, want %d, %t", tt.model, got, known, tt.want, tt.wantKnown)
		}
	}
	if _, known := (*File)(nil).Price("openai/gpt-5"); known {
		t.Error("price without a file: got one, want none")
	}
}

func TestErrorsNamePriceFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                "currency",
		"currency: usd\n": "currency",
		"currency: USD\nprices: [{model: \"a/[\", input: 1}]\n":                      "prices[0].model",
		"currency: USD\nprices: [{model: a/b, input: -1}]\n":                         "prices[0]",
		"currency: USD\nprices: [{model: a/b, input: .nan}]\n":                       "prices[0]",
		"currency: USD\nprices: [{model: a/b, price: 1}]\n":                          "price",
		"currency: USD\ntenants: {a: {tokensPerDay: -1}}\n":                          "tenants",
		"currency: USD\ntenants: {a: {costPerDay: 0.0000001}}\n":                     "line 2",
		"currency: USD\ntenants: {a: {soft: {tokensPerDay: -1}}}\n":                  "tenants",
		"currency: USD\ntenants: {a: {soft: {turnsPerDay: 1}}}\n":                    "turnsPerDay",
		"currency: USD\ntenants: {a: {tokensPerDay: 5, soft: {tokensPerDay: 5}}}\n":  `"a": soft amounts`,
		"currency: USD\ntenants: {a: {costPerDay: 0.5, soft: {costPerDay: 0.51}}}\n": `"a": soft amounts`,
		"currency: USD\nprices: \"" + strings.Repeat("x", maxFile):                   "at most 1048576 bytes",
	} {
		file := filepath.Join(t.TempDir(), "prices.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}
