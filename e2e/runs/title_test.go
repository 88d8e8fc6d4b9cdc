package runs

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/e2e/kit"
)

// TestTitleSurvivesKill: a title and metadata that were set are in the list and in the summary
// after the process was killed and restarted, and after the next run. An empty title restores that
// of the first message. The deletion removes the thread from the list.
func TestTitleSurvivesKill(t *testing.T) {
	t.Parallel()
	p := kit.Setup(t)
	in := kit.NewInput(kit.Marked("What is a fold?"))
	kit.SharedModel.AnswerWith(t, in.Messages[0].Content, kit.Marked("A sum."))
	p.Run(t, in)
	title, metadata := kit.Marked("Folds"), map[string]string{"customer": kit.Marked("42")}
	set := func(title string) {
		t.Helper()
		c, err := client.New(client.Config{URL: p.URL("")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.SetTitle(t.Context(), in.ThreadID, title); err != nil {
			t.Fatal(err)
		}
		if _, err := c.SetMetadata(t.Context(), in.ThreadID, metadata); err != nil {
			t.Fatal(err)
		}
	}
	type described struct {
		Title    string
		Metadata map[string]string
	}
	want := func(when, title string) {
		t.Helper()
		var summary described
		p.GetJSON(t, "/v1/threads/"+in.ThreadID, &summary)
		var list struct{ Items []described }
		p.GetJSON(t, "/v1/threads", &list)
		all := append(list.Items, summary)
		if diff := cmp.Diff([]described{{title, metadata}, {title, metadata}}, all); diff != "" {
			t.Errorf("list and summary %s (-want +got):\n%s", when, diff)
		}
	}
	set(title)
	p.Restart(t)
	want("after the kill", title)
	next := in.NextRun("run-2", "", kit.UserMessage(kit.Marked("And a map?")))
	kit.SharedModel.AnswerWith(t, next.Messages[len(next.Messages)-1].Content, kit.Marked("A list."))
	p.Run(t, next)
	p.Restart(t)
	want("after the next run", title)
	set("")
	p.Restart(t)
	want("after the title was restored", in.Messages[0].Content)
	if status := p.Delete(t, in.ThreadID); status != http.StatusNoContent {
		t.Fatalf("delete: status = %d, want %d", status, http.StatusNoContent)
	}
	p.Restart(t)
	var list struct{ Items []described }
	p.GetJSON(t, "/v1/threads", &list)
	if len(list.Items) > 0 {
		t.Errorf("list after the deletion = %+v, want none", list.Items)
	}
}
