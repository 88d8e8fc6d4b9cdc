package main

import "testing"

func TestProvidersAreShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	getenv := func(name string) string {
		return map[string]string{
			"OPENAI_BASE_URL": "http://bob:hunter2@127.0.0.1:9/v1?token=secret#key", "ANTHROPIC_BASE_URL": "http://bob:hunter2@[::bad", "GEMINI_API_KEY": "key",
		}[name]
	}
	const want = "scripted, openai at http://127.0.0.1:9/v1, anthropic at an invalid URL, gemini"
	if got := providers(getenv); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
