package connect_test

import (
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/internal/process/connect"
)

func TestEnsureSearchAttributes(t *testing.T) {
	t.Parallel()
	missing := serviceerror.NewInvalidArgument("no mapping for search attribute PerdureRun")
	needsBoth := func(added map[string]bool) error {
		if added["PerdureRun"] && added["PerdureAgent"] {
			return nil
		}
		return missing
	}
	tests := []struct {
		name  string
		front *frontend
		added bool
		warns bool
		fails bool
	}{
		{name: "they are there", front: &frontend{count: func(map[string]bool) error { return nil }}},
		{name: "they are missing", front: &frontend{count: needsBoth}, added: true},
		{
			name:  "another process was faster",
			front: &frontend{count: needsBoth, add: func() error { return serviceerror.NewAlreadyExists("PerdureRun") }}, added: true,
		},
		{
			name:  "creating is not allowed",
			front: &frontend{count: func(map[string]bool) error { return missing }, add: func() error { return serviceerror.NewPermissionDenied("no", "") }},
			added: true, warns: true,
		},
		{
			name:  "there is no operator service",
			front: &frontend{count: func(map[string]bool) error { return missing }, add: func() error { return serviceerror.NewUnimplemented("no") }},
			added: true, warns: true,
		},
		{name: "reading is not allowed", front: &frontend{count: func(map[string]bool) error { return serviceerror.NewPermissionDenied("no", "") }}, warns: true},
		{name: "the namespace is gone", front: &frontend{count: func(map[string]bool) error { return serviceerror.NewNamespaceNotFound("prod") }}, fails: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			log := newLogbook()
			c, err := client.DialContext(t.Context(), client.Options{HostPort: tt.front.serve(t), Namespace: "prod"})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			err = connect.EnsureSearchAttributes(t.Context(), c, "prod", []string{"PerdureAgent", "PerdureRun"}, log.logger())
			if (err != nil) != tt.fails {
				t.Errorf("got %v", err)
			}
			if warned := strings.Count(log.String(), "level=WARN"); warned > 1 || (warned == 1) != tt.warns {
				t.Errorf("%d warnings:\n%s", warned, log)
			}
			if added := tt.front.attributes["PerdureAgent"] && tt.front.attributes["PerdureRun"]; added != tt.added {
				t.Errorf("added: %v", tt.front.attributes)
			}
			if want := "PerdureAgent = 'none' AND PerdureRun = 'none'"; tt.front.lastQuery != want {
				t.Errorf("query %q, want %q", tt.front.lastQuery, want)
			}
		})
	}
}
