package files_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestRolesSuffice: in the deployed configuration of NATS, the API may store, read, sweep and delete
// files, and the worker may read them.
func TestRolesSuffice(t *testing.T) {
	t.Parallel()
	roles := streamtest.WithRoles(t)
	openAs := func(user string) *files.Store {
		t.Helper()
		store, err := files.Open(t.Context(), roles.OpenAs(t, user), files.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	api := openAs("perdure-api")
	content := string(noise(300 << 10))
	f := put(t, api, files.Upload{Tenant: "acme", Name: "a.png"}, content)
	u := create(t, api, "b.png", 4)
	add(t, api, u, []byte("text"))
	finish(t, api, u, true)
	worker := openAs("perdure-worker")
	found, err := worker.Find(t.Context(), "acme", f.ID)
	if err != nil {
		t.Fatal(err)
	}
	if string(read(t, worker, found, 0)) != content {
		t.Error("the worker reads other bytes")
	}
	exists := func(context.Context, stream.Thread) (bool, error) { return false, nil }
	x := index(t, api)
	release, err := x.Reserve(t.Context(), "acme", 100)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if err := api.Sweep(t.Context(), x, time.Now().Add(2*files.Lifetime), exists); err != nil {
		t.Fatal(err)
	}
	mustNotExist(t, api, f)
}
