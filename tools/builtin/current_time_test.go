package builtin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/builtin"
)

// friday returns a time late on a Friday in UTC, when it is already Saturday further east.
func friday() time.Time { return time.Date(2026, 7, 31, 22, 30, 15, 123456789, time.UTC) }

func TestCurrentTime(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		arguments map[string]any
		want      string
	}{
		{"UTC by default", map[string]any{}, `{"time":"2026-07-31T22:30:15Z","weekday":"Friday","timezone":"UTC"}`},
		{"summer time", map[string]any{"timezone": "Europe/Berlin"}, `{"time":"2026-08-01T00:30:15+02:00","weekday":"Saturday","timezone":"Europe/Berlin"}`},
		{"odd offset", map[string]any{"timezone": "Asia/Kathmandu"}, `{"time":"2026-08-01T04:15:15+05:45","weekday":"Saturday","timezone":"Asia/Kathmandu"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			result := call(t, builtin.CurrentTime(friday), tt.arguments)
			if result.IsError || result.Content != tt.want {
				t.Errorf("got %s (failed: %t), want %s", result.Content, result.IsError, tt.want)
			}
		})
	}
}

func TestCurrentTimeRefuses(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Local", "Berlin", "../../etc/passwd", "/etc/localtime", "\x00", strings.Repeat("x", 5000)} {
		result := call(t, builtin.CurrentTime(friday), map[string]any{"timezone": zone})
		if !result.IsError || !strings.Contains(result.Content, "expected an IANA name") || len(result.Content) > 500 {
			t.Errorf("%.40q: %q (failed: %t), want a short failure that names the form", zone, result.Content, result.IsError)
		}
	}
}

func TestToolsRegister(t *testing.T) {
	t.Parallel()
	registry, err := tools.NewRegistry(builtin.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"calculate", "current_time"} {
		tool, ok := registry.Lookup(name)
		if !ok {
			t.Fatalf("no tool %s", name)
		}
		if spec := tool.Spec(); !spec.Idempotent || spec.Description == "" {
			t.Errorf("%s: spec %+v, want an idempotent tool with a description", name, spec)
		}
	}
}
