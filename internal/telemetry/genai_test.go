package telemetry

import "testing"

func TestConventionalNames(t *testing.T) {
	t.Parallel()
	for provider, want := range map[string]string{"gemini": "gcp.gemini", "anthropic": "anthropic", "openai": "openai", "ours": "ours"} {
		if got := conventional(provider); got != want {
			t.Errorf("%s is called %s, want %s", provider, got, want)
		}
	}
}
