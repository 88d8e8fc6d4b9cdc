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
		name        string
		front       *frontend
		wantAdded   bool
		wantWarning bool
		wantErr     bool
	}{
		{name: "they are there", front: &frontend{count: func(map[string]bool) error { return nil }}},
		{name: "they are missing", front: &frontend{count: needsBoth}, wantAdded: true},
		{
			name:  "another process was faster",
			front: &frontend{count: needsBoth, add: func() error { return serviceerror.NewAlreadyExists("PerdureRun") }}, wantAdded: true,
		},
		{
			name:      "creating is not allowed",
			front:     &frontend{count: func(map[string]bool) error { return missing }, add: func() error { return serviceerror.NewPermissionDenied("no", "") }},
			wantAdded: true, wantWarning: true,
		},
		{
			name:      "there is no operator service",
			front:     &frontend{count: func(map[string]bool) error { return missing }, add: func() error { return serviceerror.NewUnimplemented("no") }},
			wantAdded: true, wantWarning: true,
		},
		{name: "reading is not allowed", front: &frontend{count: func(map[string]bool) error { return serviceerror.NewPermissionDenied("no", "") }}, wantWarning: true},
		{name: "the namespace is gone", front: &frontend{count: func(map[string]bool) error { return serviceerror.NewNamespaceNotFound("prod") }}, wantErr: true},
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
			if (err != nil) != tt.wantErr {
				t.Errorf("error = %v, want one: %t", err, tt.wantErr)
			}
			if warned := strings.Count(log.String(), "level=WARN"); warned > 1 || (warned == 1) != tt.wantWarning {
				t.Errorf("number of warnings = %d, want at most one, and one: %t\n%s", warned, tt.wantWarning, log)
			}
			if added := tt.front.attributes["PerdureAgent"] && tt.front.attributes["PerdureRun"]; added != tt.wantAdded {
				t.Errorf("attributes = %v, want them added: %t", tt.front.attributes, tt.wantAdded)
			}
			if want := "PerdureAgent = 'none' AND PerdureRun = 'none'"; tt.front.lastQuery != want {
				t.Errorf("query %q, want %q", tt.front.lastQuery, want)
			}
		})
	}
}
