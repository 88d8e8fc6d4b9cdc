package schedules_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/stream"
)

// definitionWith returns a schedule with some members changed; nil removes a member.
func definitionWith(t *testing.T, changes map[string]any) []byte {
	t.Helper()
	body := map[string]any{
		"id": "s", "agent": "a", "cron": []string{"0 9 * * 1-5"},
		"input": map[string]any{"messages": []any{map[string]any{"role": "user", "content": "Good morning."}}},
	}
	for name, value := range changes {
		if body[name] = value; value == nil {
			delete(body, name)
		}
	}
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// parse returns a valid schedule with changed members.
func parse(t *testing.T, changes map[string]any) *schedules.Schedule {
	t.Helper()
	s, err := schedules.Parse(definitionWith(t, changes))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// withMessage returns the changes that replace the message.
func withMessage(message map[string]any) map[string]any {
	return map[string]any{"messages": []any{message}}
}

func TestErrorsNameMember(t *testing.T) {
	t.Parallel()
	hello := map[string]any{"role": "user", "content": "hello"}
	for _, c := range []struct {
		wantPointer string
		changes     map[string]any
	}{
		{"", map[string]any{"cron": nil}},
		{"", map[string]any{"catchUpWindows": "1h"}},
		{"/cron", map[string]any{"cron": "0 9 * * *"}},
		{"/cron", map[string]any{"cron": strings.Split(strings.Repeat("@daily ", 21), " ")}},
		{"/cron/1", map[string]any{"cron": []string{"@daily", "0 9 * *"}}},
		{"/cron/0", map[string]any{"cron": []string{"60 9 * * *"}}},
		{"/cron/0", map[string]any{"cron": []string{"TZ=UTC 0 9 * * *"}}},
		{"/cron/0", map[string]any{"cron": []string{"0 9 * * 5-1"}}},
		{"/cron/0", map[string]any{"cron": []string{"0/0 9 * * *"}}},
		{"/calendars/0/hour", map[string]any{"calendars": []any{map[string]string{"hour": "24"}}}},
		{"/calendars/0/month", map[string]any{"calendars": []any{map[string]string{"month": "JUNE"}}}},
		{"/intervals/0/every", map[string]any{"intervals": []any{map[string]string{"every": "500ms"}}}},
		{"/intervals/0/every", map[string]any{"intervals": []any{map[string]string{}}}},
		{"/intervals/0/offset", map[string]any{"intervals": []any{map[string]string{"every": "1h", "offset": "1h"}}}},
		{"/timeZone", map[string]any{"timeZone": "Europe/Atlantis"}},
		{"/timeZone", map[string]any{"timeZone": "Local"}},
		{"/timeZone", map[string]any{"timeZone": ""}},
		{"/startAt", map[string]any{"startAt": "tomorrow"}},
		{"/endAt", map[string]any{"startAt": "2030-01-01T00:00:00Z", "endAt": "2029-01-01T00:00:00Z"}},
		{"/jitter", map[string]any{"jitter": "-1s"}},
		{"/overlap", map[string]any{"overlap": "sometimes"}},
		{"/catchupWindow", map[string]any{"catchupWindow": "1s"}},
		{"/pauseOnFailure", map[string]any{"pauseOnFailure": "yes"}},
		{"/onBusy", map[string]any{"onBusy": "steer"}},
		{"/note", map[string]any{"note": strings.Repeat("x", 1001)}},
		{"/input", map[string]any{"input": nil}},
		{"/input", map[string]any{"input": map[string]any{"messages": []any{hello}, "threadId": "t"}}},
		{"/input/messages", map[string]any{"input": map[string]any{"messages": []any{}}}},
		{"/input/messages/0", map[string]any{"input": map[string]any{"messages": []any{nil}}}},
		{"/input/messages/0/id", map[string]any{"input": withMessage(map[string]any{"id": "m", "role": "user", "content": "x"})}},
		{"/input/messages/0/role", map[string]any{"input": withMessage(map[string]any{"role": "assistant", "content": "x"})}},
		{"/input/messages/0/content", map[string]any{"input": withMessage(map[string]any{"role": "user"})}},
		{"/input/forwardedProps/perdure", map[string]any{"input": map[string]any{
			"messages": []any{hello}, "forwardedProps": map[string]any{"perdure": map[string]any{"onBusy": "reject"}},
		}}},
	} {
		s, err := schedules.Parse(definitionWith(t, c.changes))
		var wrong *schedules.FieldError
		if !errors.As(err, &wrong) || wrong.Pointer != c.wantPointer || wrong.Detail == "" {
			t.Errorf("%v: %+v (%v), want a mistake at %q", c.changes, s, err, c.wantPointer)
		}
	}
	for _, body := range []string{"", "[]", "null", `{"id":"s"} {}`} {
		if _, err := schedules.Parse([]byte(body)); err == nil {
			t.Errorf("Parse of %q: got no error, want one", body)
		}
	}
}

func TestTimesMatchTemporal(t *testing.T) {
	t.Parallel()
	s := parse(t, map[string]any{
		"cron": []string{"*/15 9-17 1,15 jan-MAR 5-7"}, "calendars": []any{map[string]string{"second": "30", "dayOfWeek": "*/2"}},
		"intervals": []any{map[string]string{"every": "90s", "offset": "30s"}}, "timeZone": "Europe/Berlin", "jitter": "5s",
		"startAt": "2030-01-01T00:00:00Z",
	})
	got, err := s.Spec.Temporal()
	if err != nil {
		t.Fatal(err)
	}
	r := func(start, end, step int) client.ScheduleRange {
		return client.ScheduleRange{Start: start, End: end, Step: step}
	}
	type ranges = []client.ScheduleRange
	want := client.ScheduleSpec{
		Calendars: []client.ScheduleCalendarSpec{{
			Second: ranges{r(0, 0, 1)}, Minute: ranges{r(0, 59, 15)}, Hour: ranges{r(9, 17, 1)}, DayOfMonth: ranges{r(1, 1, 1), r(15, 15, 1)},
			Month: ranges{r(1, 3, 1)}, Year: ranges{r(2000, 2100, 1)}, DayOfWeek: ranges{r(0, 0, 1), r(5, 5, 1), r(6, 6, 1)},
			Comment: "*/15 9-17 1,15 jan-MAR 5-7",
		}, {
			Second: ranges{r(30, 30, 1)}, Minute: ranges{r(0, 0, 1)}, Hour: ranges{r(0, 0, 1)}, DayOfMonth: ranges{r(1, 31, 1)},
			Month: ranges{r(1, 12, 1)}, Year: ranges{r(2000, 2100, 1)}, DayOfWeek: ranges{r(0, 0, 1), r(2, 2, 1), r(4, 4, 1), r(6, 6, 1)},
		}},
		Intervals:    []client.ScheduleIntervalSpec{{Every: 90 * time.Second, Offset: 30 * time.Second}},
		TimeZoneName: "Europe/Berlin", Jitter: 5 * time.Second, StartAt: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
}

func TestEqualTimeIsSameRun(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 31, 9, 0, 0, 0, time.FixedZone("", 3600))
	s := parse(t, nil)
	run := s.RunAt("shop", at)
	want := stream.Run{Thread: stream.Thread{Tenant: "shop", ID: "s-20300131T080000Z"}, ID: "s-20300131T080000Z"}
	if run != want {
		t.Errorf("%+v, want %+v", run, want)
	}
	if on := parse(t, map[string]any{"threadId": "t"}).RunAt("shop", at); on.Thread.ID != "t" || on.ID != run.ID {
		t.Errorf("run on a thread = %+v, want the same run of t", on)
	}
	first, err := s.RunInput(run)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.RunInput(run)
	if err != nil || first.Digest() != again.Digest() || first.ThreadID != run.Thread.ID || first.RunID != run.ID {
		t.Errorf("inputs of one time = %+v and %+v (%v), want equal ones", first, again, err)
	}
	other, err := s.RunInput(s.RunAt("shop", at.Add(time.Second)))
	if err != nil || other.Messages[0].ID == first.Messages[0].ID || first.Messages[0].ID == "" {
		t.Errorf("messages of two runs = %+v and %+v (%v), want different IDs", first.Messages, other.Messages, err)
	}
	id := schedules.FireID("shop", "s") + "-2030-01-31T08:00:00Z"
	if nominal, ok := schedules.NominalTime("shop", "s", id); !ok || !nominal.Equal(at) {
		t.Errorf("NominalTime of %s = %s, %t, want %s", id, nominal, ok, at)
	}
}

func TestDigestCoversDefinition(t *testing.T) {
	t.Parallel()
	digest := func(body []byte) string {
		s, err := schedules.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		d, err := s.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := digest(definitionWith(t, nil))
	same := `{"input": {"messages": [{"content": "Good morning.", "role": "user"}]}, "overlap": "skip", "timeZone": "UTC",
		"cron": ["0 9 * * 1-5"], "agent": "a", "id": "s"}`
	if d := digest([]byte(same)); d != first {
		t.Error("digest of the same schedule in other words differs, want the same")
	}
	for _, changes := range []map[string]any{
		{"agent": "b"}, {"cron": []string{"0 10 * * 1-5"}}, {"overlap": "allow_all"}, {"note": "x"}, {"threadId": "t"},
		{"input": withMessage(map[string]any{"role": "user", "content": "Good night."})},
	} {
		if digest(definitionWith(t, changes)) == first {
			t.Errorf("digest with %v is the same, want another", changes)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"id":"s","agent":"a","cron":["*/5 * * * *"],"input":{"messages":[{"role":"user","content":"x"}]}}`))
	f.Add([]byte(`{"calendars":[{"hour":"1-5/2,7"}],"intervals":[{"every":"1h"}],"input":{"messages":[null]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := schedules.Parse(body)
		if err != nil {
			return
		}
		spec, err := s.Spec.Temporal()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range spec.Calendars {
			for _, r := range c.DayOfWeek {
				if r.Start < 0 || r.End > 6 || r.Start > r.End {
					t.Errorf("days of %q = %+v, want 0 to 6", body, c.DayOfWeek)
				}
			}
		}
		if _, err := s.Digest(); err != nil {
			t.Errorf("%q has no digest: %v", body, err)
		}
	})
}
