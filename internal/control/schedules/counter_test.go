package schedules_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestTimesPerHour: the number of firings counts what an hour has at most, for each expression at
// least 1.
func TestTimesPerHour(t *testing.T) {
	t.Parallel()
	type list = []map[string]string
	for _, tt := range []struct {
		changes map[string]any
		want    int64
	}{
		{map[string]any{"cron": []string{"0 9 * * 1-5"}}, 1},
		{map[string]any{"cron": []string{"*/15 * * * *", "0,30 9-17 * * *"}}, 6},
		{map[string]any{"cron": []string{"* * * * *"}}, 60},
		{map[string]any{"cron": []string{"0-30,20-59 * * * *"}}, 60},
		{map[string]any{"cron": []string{}, "calendars": list{{"second": "*", "minute": "*"}}}, 3600},
		{map[string]any{"cron": []string{}, "calendars": list{{"second": "0,30", "hour": "9"}}}, 2},
		{map[string]any{"cron": []string{}, "intervals": list{{"every": "1s"}, {"every": "7m"}, {"every": "24h"}}}, 3610},
	} {
		if got := parse(t, tt.changes).TimesPerHour(); got != tt.want {
			t.Errorf("%v: got %d times, want %d", tt.changes, got, tt.want)
		}
	}
}

// TestCounterFollowsSchedules: a Counter has the schedules that exist, those that are written, and
// no deleted ones.
func TestCounterFollowsSchedules(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	store, err := schedules.Open(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	stored := func(id, cron string) *schedules.Stored {
		k := &schedules.Stored{Schedule: *parse(t, map[string]any{"cron": []string{cron}})}
		k.ID = id
		return k
	}
	first, second := stored("first", "@hourly"), stored("a second", "*/30 * * * *")
	second.Owner = &auth.Principal{Tenant: "sho p", Subject: "ann"}
	if err := store.Create(t.Context(), "sho p", first); err != nil {
		t.Fatal(err)
	}
	counter, err := store.Count(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(counter.Stop)
	want := func(tenant string, all, perHour int64) {
		t.Helper()
		for late := time.After(10 * time.Second); ; {
			changed := counter.Changed()
			a, n := counter.Counts(tenant)
			if a == all && n == perHour {
				return
			}
			select {
			case <-changed:
			case <-late:
				t.Fatalf("%s: got %d schedules and %d firings, want %d and %d", tenant, a, n, all, perHour)
			}
		}
	}
	want("sho p", 1, 1)
	if err := store.Create(t.Context(), "sho p", second); err != nil {
		t.Fatal(err)
	}
	counter.Await(t.Context(), "sho p", "a second", 2)
	if all, n := counter.Counts("sho p"); all != 2 || n != 3 {
		t.Errorf("after Await: got %d schedules and %d firings, want 2 and 3", all, n)
	}
	if all, n := counter.CountsOf("sho p", "ann"); all != 1 || n != 2 {
		t.Errorf("of ann: got %d schedules and %d firings, want 1 and 2", all, n)
	}
	if err := store.Create(t.Context(), "other", stored("first", "* * * * *")); err != nil {
		t.Fatal(err)
	}
	want("other", 1, 60)
	changed := stored("first", "0,20,40 * * * *")
	changed.Revision = first.Revision
	if err := store.Change(t.Context(), "sho p", changed); err != nil {
		t.Fatal(err)
	}
	want("sho p", 2, 5)
	if err := store.Delete(t.Context(), "sho p", "a second"); err != nil {
		t.Fatal(err)
	}
	want("sho p", 1, 3)
	want("unknown", 0, 0)
}
