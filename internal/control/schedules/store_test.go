package schedules_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/stream/streamtest"
)

// storedSchedule returns a schedule to store.
func storedSchedule(id, note string) *schedules.Stored {
	return &schedules.Stored{Schedule: schedules.Schedule{ID: id, Agent: "a", Note: note}, Requester: &auth.Principal{Tenant: "shop", Subject: "ann"}}
}

func TestStoreKeepsRevisions(t *testing.T) {
	t.Parallel()
	store, err := schedules.Open(t.Context(), streamtest.Open(t))
	if err != nil {
		t.Fatal(err)
	}
	first := storedSchedule("s/1", "first")
	if err := store.Create(t.Context(), "shop", first); err != nil || first.Revision == 0 {
		t.Fatalf("Create = %+v (%v), want a revision", first, err)
	}
	if err := store.Create(t.Context(), "shop", storedSchedule("s/1", "again")); !errors.Is(err, schedules.ErrExists) {
		t.Errorf("second Create = %v, want %v", err, schedules.ErrExists)
	}
	second := storedSchedule("s/1", "second")
	second.Revision = first.Revision
	if err := store.Change(t.Context(), "shop", second); err != nil || second.Revision == first.Revision {
		t.Fatalf("Change = %+v (%v), want another revision", second, err)
	}
	late := storedSchedule("s/1", "late")
	late.Revision = first.Revision
	if err := store.Change(t.Context(), "shop", late); !errors.Is(err, schedules.ErrChanged) {
		t.Errorf("Change of an outdated revision = %v, want %v", err, schedules.ErrChanged)
	}
	if now, err := store.Get(t.Context(), "shop", "s/1"); err != nil || now.Note != "second" || now.Requester.Subject != "ann" {
		t.Errorf("Get = %+v (%v), want the note second of ann", now, err)
	}
	if then, err := store.At(t.Context(), "shop", "s/1", first.Revision); err != nil || then.Note != "first" {
		t.Errorf("At = %+v (%v), want the note first", then, err)
	}
	if _, err := store.Get(t.Context(), "other", "s/1"); !errors.Is(err, schedules.ErrUnknown) {
		t.Errorf("Get of another tenant = %v, want %v", err, schedules.ErrUnknown)
	}
	if err := store.Delete(t.Context(), "shop", "s/1"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Get(t.Context(), "shop", "s/1"); !errors.Is(err, schedules.ErrUnknown) {
		t.Errorf("Get after the deletion = %v, want %v", err, schedules.ErrUnknown)
	}
	if _, err := store.At(t.Context(), "shop", "s/1", second.Revision); !errors.Is(err, schedules.ErrUnknown) {
		t.Errorf("At after the deletion = %v, want %v", err, schedules.ErrUnknown)
	}
	if err := store.Create(t.Context(), "shop", storedSchedule("s/1", "anew")); err != nil {
		t.Errorf("it cannot be created anew: %v", err)
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	store, err := schedules.Open(t.Context(), streamtest.Open(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		for _, tenant := range []string{"shop", "sho p", "other"} {
			if err := store.Create(t.Context(), tenant, storedSchedule(fmt.Sprintf("s%d", i), tenant)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var seen []string
	after := ""
	for pages := 1; ; pages++ {
		page, next, err := store.List(t.Context(), "shop", after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range page {
			seen = append(seen, k.ID+" "+k.Note)
		}
		if after = next; after == "" {
			if pages != 3 {
				t.Errorf("number of pages = %d, want 3", pages)
			}
			break
		}
	}
	if got := fmt.Sprint(seen); got != "[s0 shop s1 shop s2 shop s3 shop s4 shop]" {
		t.Errorf("schedules = %s, want all five of shop", got)
	}
}
