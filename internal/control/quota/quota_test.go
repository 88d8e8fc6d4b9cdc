package quota

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/process/filewatch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table returns the table of a file.
func table(t *testing.T, text string) *Table {
	t.Helper()
	parsed, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// TestTableChoosesMostSpecificLimit: a tenant's own limit precedes the default of the file, which
// precedes that of Perdure. 0 stands for the next one, and unlimited for no limit.
func TestTableChoosesMostSpecificLimit(t *testing.T) {
	t.Parallel()
	parsed := table(t, `
default: {runs: 5, threads: unlimited, schedules: 0, agents: 7}
tenants:
  acme: {runs: 9, threads: 3, requestsPerSecond: unlimited}
  globex:
`)
	for _, tt := range []struct {
		tenant string
		name   Name
		want   Limit
	}{
		{"acme", Runs, 9}, {"acme", Threads, 3}, {"acme", Requests, Unlimited}, {"acme", Schedules, defaultSchedules},
		{"globex", Runs, 5}, {"other", Threads, Unlimited}, {"other", Schedules, defaultSchedules}, {"other", Agents, 7},
	} {
		if got := parsed.Of(tt.tenant, tt.name); got != tt.want {
			t.Errorf("%s of %s: got %s, want %s", tt.name, tt.tenant, got, tt.want)
		}
	}
	if got := fmt.Sprint(parsed.Listed()); got != "[acme globex]" {
		t.Errorf("listed tenants: got %s, want acme and globex", got)
	}
	if got := (*Table)(nil).Of("acme", Runs); got != defaultRuns {
		t.Errorf("without a file: got %s, want %d", got, defaultRuns)
	}
}

// TestMistakesNameTheirLine: each mistake of a file is reported with its line.
func TestMistakesNameTheirLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"defaults: {}", "line 1: unknown key"},
		{"default:\n  runs: 5\n  run: 5", "line 3: unknown quota"},
		{"tenants:\n  acme:\n    unauthenticatedPerSecond: 5", "line 3: unauthenticatedPerSecond belongs to no tenant"},
		{"tenants:\n  acme:\n    runs: -1", "line 3: "},
		{"tenants:\n  acme:\n    runs: many", "line 3: "},
		{"default:\n  requestsPerSecond: 1000001", "line 2: "},
		{"tenants:\n  acme: 5", "line 2: must be a mapping"},
		{"tenants:\n  acme: {}\n  acme: {}", "acme"},
		{"default:\n  runs: 1\n  x: 1\n  y: 1", "line 4: unknown quota"},
		{"default:\n  subjectPercent: 101", "line 2: \"101\" must be a whole number from 0 to 100"},
	} {
		if _, err := Parse([]byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, want %q", tt.text, err, tt.want)
		}
	}
}

// TestTableFollowsFile: a changed file applies, and an invalid one leaves the table as it was.
func TestTableFollowsFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "quotas.yaml")
	write := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("default: {runs: 1}")
	log := make(lines, 8)
	opened, err := Open(name, false, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	write("default: {run: 2}")
	if line := log.next(t); !strings.Contains(line, "line 1") || opened.Of("acme", Runs) != 1 {
		t.Errorf("invalid file: got %q and %s, want line 1 in the log and 1", line, opened.Of("acme", Runs))
	}
	write("default: {runs: 3}")
	if line := log.next(t); opened.Of("acme", Runs) != 3 {
		t.Errorf("changed file: got %q and %s, want 3", line, opened.Of("acme", Runs))
	}
	write("default: {runs: 4, x: 1}")
	if _, err := Open(name, false, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("Open with an invalid file: got nil, want an error")
	}
}

// lines receives the lines of a log.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }

func (l lines) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-l:
		return line
	case <-time.After(40 * filewatch.Interval):
		t.Fatal("no line in the log, want one")
		return ""
	}
}

// TestRoomLeavesPlacesToOthers: a tenant takes at most nine tenths of the places, so another one
// gets some.
func TestRoomLeavesPlacesToOthers(t *testing.T) {
	t.Parallel()
	room := NewRoom(100, table(t, "tenants: {b: {streams: 5}}"), Streams)
	enter := func(tenant string) (int, error) { return fill(room, auth.Principal{Tenant: tenant}) }
	if n, err := enter("a"); n != 90 || !errors.Is(err, ErrFull) {
		t.Errorf("first tenant: got %d places, %v, want 90 and ErrFull", n, err)
	}
	n, err := enter("b")
	if exceeded, ok := errors.AsType[*ExceededError](err); n != 5 || !ok || *exceeded != (ExceededError{Streams, 5, 5, false}) {
		t.Errorf("tenant with a quota of 5: got %d places, %v, want 5 and an ExceededError", n, err)
	}
	if n, _ := enter("c"); n != 5 {
		t.Errorf("last tenant: got %d places, want 5", n)
	}
	room.Leave(auth.Principal{Tenant: "a"})
	if room.Taken("a") != 89 || room.Enter(auth.Principal{Tenant: "d"}) != nil {
		t.Error("a place that was left is not free")
	}
}

// fill enters a room until it refuses the caller, and returns the number of places.
func fill(room *Room, p auth.Principal) (n int, err error) {
	for {
		if err = room.Enter(p); err != nil {
			return n, err
		}
		n++
	}
}

// TestSubjectHasPartOfItsTenant: a subject gets half of what its tenant can get, or the part in the
// file. Another subject finds the rest. An anonymous caller gets all.
func TestSubjectHasPartOfItsTenant(t *testing.T) {
	t.Parallel()
	limits := table(t, "tenants: {small: {streams: 5}, one: {streams: 1}, most: {subjectPercent: 80}, all: {subjectPercent: unlimited}}")
	for _, tt := range []struct {
		tenant, subject string
		want            int
	}{{"large", "ann", 45}, {"small", "ann", 2}, {"one", "ann", 1}, {"most", "ann", 72}, {"all", "ann", 90}, {"large", "", 90}, {"small", "", 5}} {
		room := NewRoom(100, limits, Streams)
		n, err := fill(room, auth.Principal{Tenant: tt.tenant, Subject: tt.subject})
		if n != tt.want {
			t.Errorf("%q of %s: got %d places, want %d", tt.subject, tt.tenant, n, tt.want)
		}
		if exceeded, ok := errors.AsType[*ExceededError](err); tt.want == 45 && (!ok || *exceeded != (ExceededError{Streams, 45, 45, true})) {
			t.Errorf("%q of %s: got %v, want the part of the subject", tt.subject, tt.tenant, err)
		}
		if tt.subject == "ann" && tt.tenant == "large" {
			if n, _ := fill(room, auth.Principal{Tenant: tt.tenant, Subject: "bob"}); n != 45 {
				t.Errorf("second subject: got %d places, want 45", n)
			}
			room.Leave(auth.Principal{Tenant: tt.tenant, Subject: "ann"})
			if err := room.Enter(auth.Principal{Tenant: tt.tenant, Subject: "ann"}); err != nil {
				t.Errorf("the place that ann has left: %v", err)
			}
		}
	}
	if n, err := fill(NewRoom(100, limits, ""), auth.Principal{Tenant: "a", Subject: "ann"}); n != 45 || !errors.Is(err, ErrFull) {
		t.Errorf("room without a quota: got %d places, %v, want 45 and ErrFull", n, err)
	}
}

// TestMeterChecksPartOfSubject: a subject may have half of the active runs of its tenant.
func TestMeterChecksPartOfSubject(t *testing.T) {
	t.Parallel()
	used := int64(1)
	meter := &Meter{Table: table(t, "default: {runs: 4}"), Subjects: map[Name]SubjectCount{Runs: func(tenant, subject string) int64 { return used }}}
	if err := meter.CheckSubject("acme", "ann", Runs, 1); err != nil {
		t.Errorf("one run of two: %v", err)
	}
	if exceeded, ok := errors.AsType[*ExceededError](meter.CheckSubject("acme", "ann", Runs, 2)); !ok || *exceeded != (ExceededError{Runs, 2, 1, true}) {
		t.Errorf("two more runs: got %v, want an ExceededError", exceeded)
	}
	for _, tt := range []struct {
		subject string
		name    Name
	}{{"", Runs}, {"ann", Threads}} {
		if err := meter.CheckSubject("acme", tt.subject, tt.name, 9); err != nil {
			t.Errorf("%s of %q: got %v, want no part of a subject", tt.name, tt.subject, err)
		}
	}
}

// TestTriggersHaveRate: requests fire the schedules of a tenant as often as its definitions may,
// and a sixtieth of an hour's firings at once.
func TestTriggersHaveRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rates := NewRates(table(t, "default: {firingsPerHour: 600}"))
		take := func(tenant string) (n int, err error) {
			for ; err == nil; n++ {
				err = rates.TakeTrigger(tenant)
			}
			return n - 1, err
		}
		n, err := take("acme")
		if e, ok := errors.AsType[*RateError](err); n != 10 || !ok || e.Policy != Firings || e.Burst != 10 || e.Window != time.Minute || e.Wait != 6*time.Second {
			t.Errorf("triggers: got %d, %+v, want 10 and a wait of 6 s", n, err)
		}
		if n, _ := take("globex"); n != 10 {
			t.Errorf("another tenant: got %d, want 10", n)
		}
		<-time.After(time.Minute)
		if n, _ := take("acme"); n != 10 {
			t.Errorf("after a minute: got %d, want 10", n)
		}
	})
}

// TestRatesRefuseFlood: a subject beyond its rate is refused, and gets tokens again with time. Its
// refused requests do not use tokens of the tenant.
func TestRatesRefuseFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rates := NewRates(table(t, "default: {subjectRequestsPerSecond: 2, requestsPerSecond: 3, subjectWritesPerSecond: 1}"))
		ann, bob := auth.Principal{Tenant: "acme", Subject: "ann"}, auth.Principal{Tenant: "acme", Subject: "bob"}
		take := func(p auth.Principal, writes bool) (n int, err error) {
			for {
				if err = rates.Take(p, writes); err != nil || n == 1000 {
					return n, err
				}
				n++
			}
		}
		n, err := take(ann, true)
		e, ok := errors.AsType[*RateError](err)
		if n != 10 || !ok || e.Policy != SubjectWrites || e.Burst != 10 || e.Wait != time.Second {
			t.Fatalf("writes: got %d, %+v, want 10 and a wait of 1 s", n, err)
		}
		if n, err := take(ann, false); n != 10 {
			t.Errorf("reads after 10 writes: got %d, %v, want 10", n, err)
		}
		if n, err := take(bob, false); n != 10 {
			t.Errorf("another subject: got %d, %v, want the 10 that the tenant has left", n, err)
		}
		if n, _ := take(auth.Principal{Tenant: "globex", Subject: "ann"}, false); n != 20 {
			t.Errorf("another tenant: got %d, want 20", n)
		}
		<-time.After(time.Second)
		if n, _ := take(ann, false); n != 2 {
			t.Errorf("after a second: got %d, want 2", n)
		}
	})
}

// TestAnonymousCallersHaveNoRates: callers that share a name would share its rate. A file may set one.
func TestAnonymousCallersHaveNoRates(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "quotas.yaml")
	if err := os.WriteFile(name, []byte("default: {subjectWritesPerSecond: 7}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]Limit{"": Unlimited, name: 7} {
		opened, err := Open(file, true, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer opened.Close()
		if got := opened.Of("default", SubjectWrites); got != want {
			t.Errorf("file %q: rate = %s, want %s", file, got, want)
		}
		if got := opened.Of("default", Firings); got != Unlimited {
			t.Errorf("file %q: firings = %s, want %s", file, got, Unlimited)
		}
		if got := opened.Of("default", Runs); got != defaultRuns {
			t.Errorf("file %q: runs = %s, want %d", file, got, defaultRuns)
		}
	}
}

// TestRatesFollowTable: a bucket changes with the file, and an unlimited rate needs none.
func TestRatesFollowTable(t *testing.T) {
	t.Parallel()
	limits := table(t, "default: {requestsPerSecond: 1}")
	rates := NewRates(limits)
	p := auth.Principal{Tenant: "acme"}
	for range burstSeconds {
		if err := rates.Take(p, false); err != nil {
			t.Fatal(err)
		}
	}
	if rates.Take(p, false) == nil {
		t.Error("an empty bucket has a token")
	}
	limits.file.Store(table(t, "default: {requestsPerSecond: unlimited}").file.Load())
	if err := rates.Take(p, false); err != nil {
		t.Errorf("unlimited: %v", err)
	}
}

// TestBucketsAreBounded: callers without credentials from any number of addresses use a bounded
// number of buckets, and addresses of one IPv6 network are one peer.
func TestBucketsAreBounded(t *testing.T) {
	t.Parallel()
	rates := NewRates(nil)
	refused := 0
	for i := range 2 * burstSeconds * defaultUnauthenticated {
		peer := netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", i))
		if rates.TakeRefusal(peer) != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Error("one network: no request is refused")
	}
	for i := range 2 * maxBuckets {
		if err := rates.TakeRefusal(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})); err != nil {
			t.Fatal(err)
		}
	}
	if n := rates.buckets.Len(); n != maxBuckets {
		t.Errorf("buckets: got %d, want %d", n, maxBuckets)
	}
	_ = rates.TakeRefusal(netip.Addr{}) // an address that is unknown
}

// TestWarningOncePerCrossing: a tenant that reaches 80 % of a quota is logged once, and again when it
// reaches 80 % after it had less. A count that fails refuses nothing silently.
func TestWarningOncePerCrossing(t *testing.T) {
	t.Parallel()
	log := &strings.Builder{}
	limits := table(t, "default: {runs: 10}")
	limits.logger, limits.warned = slog.New(slog.NewTextHandler(log, nil)), map[warning]bool{}
	used, failure := int64(0), error(nil)
	meter := &Meter{Table: limits, Counts: map[Name]Count{Runs: func(context.Context, string) (int64, error) { return used, failure }}}
	for _, step := range []struct {
		used    int64
		lines   int
		refused bool
	}{{7, 0, false}, {8, 1, false}, {9, 1, false}, {10, 1, true}, {7, 1, false}, {8, 2, false}} {
		used = step.used
		err := meter.Check(t.Context(), "acme", Threads, Runs)
		_, refused := errors.AsType[*ExceededError](err)
		if lines := strings.Count(log.String(), "\n"); lines != step.lines || refused != step.refused {
			t.Errorf("%d used: got %d lines, %v, want %d and refused: %t", step.used, lines, err, step.lines, step.refused)
		}
	}
	if failure = errors.New("away"); !errors.Is(meter.Check(t.Context(), "acme", Runs), failure) {
		t.Error("a count that fails: got no error, want it")
	}
}
