package activities_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/activities"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/remote"
	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
)

// TestModelReceivesBytesOfFiles: the model receives the bytes of the thread's files. Clients are shown an
// event for a file that is missing, of another thread, or too large.
func TestModelReceivesBytesOfFiles(t *testing.T) {
	t.Parallel()
	var received []llm.Part
	fixture := setup(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		received = req.Messages[len(req.Messages)-1].Parts
		return textAnswer("seen")
	})
	store, err := files.Open(t.Context(), fixture.log, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fixture.acts.Files = activities.NewFileStore(store)
	put := func(thread string, content []byte) string {
		t.Helper()
		f, err := store.Put(t.Context(), files.Upload{Tenant: "default", Name: "a.pdf", Thread: thread, Body: bytes.NewReader(content)})
		if err != nil {
			t.Fatal(err)
		}
		return f.URL()
	}
	pdf := append([]byte("%PDF-1.7\n"), make([]byte, 100<<10)...)
	urls := []string{
		put("t1", pdf), "/v1/files/file_none", put("another", []byte("secret")), put("t1", make([]byte, 20<<20+1)),
		put("t1", append(make([]byte, 15<<20), 1)), put("t1", append(make([]byte, 15<<20), 2)), "https://x.example/a.pdf",
	}
	parts := []agui.ContentPart{agui.TextPart("read these")}
	for _, url := range urls {
		parts = append(parts, agui.ContentPart{Type: agui.PartDocument, Source: &agui.PartSource{Type: agui.SourceURL, Value: url, MimeType: "image/png"}})
	}
	fixture.more = []agui.Message{{ID: "u2", Role: agui.RoleUser, Content: agui.PartsContent(parts)}}
	events, _ := fixture.run("hello")
	var dropped []string
	for _, event := range events {
		if event, ok := event.(*agui.Custom); ok && event.Name == "perdure.contentDropped" {
			dropped = append(dropped, string(event.Value))
		}
	}
	want := []string{
		`{"messageId":"u2","part":2,"type":"document","mimeType":"image/png","reason":"file_not_found","provider":"test"}`,
		`{"messageId":"u2","part":3,"type":"document","mimeType":"image/png","reason":"file_not_found","provider":"test"}`,
		`{"messageId":"u2","part":4,"type":"document","mimeType":"image/png","reason":"file_too_large","provider":"test"}`,
		`{"messageId":"u2","part":6,"type":"document","mimeType":"image/png","reason":"file_too_large","provider":"test"}`,
	}
	if !slices.Equal(dropped, want) {
		t.Errorf("dropped parts: got\n%q, want\n%q", dropped, want)
	}
	if len(received) != 4 {
		t.Fatalf("parts = %d, want the text, two files and a URL", len(received))
	}
	first := llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", Data: base64.StdEncoding.EncodeToString(pdf)}
	if received[1] != first {
		t.Errorf("first part = %.100v, want the bytes of the PDF", received[1])
	}
	if last, ok := received[3].(llm.Media); !ok || last.URL != "https://x.example/a.pdf" {
		t.Errorf("last part = %.100v, want the other URL", received[3])
	}
}

// TestRepeatedFileCountsForEachPart: a file in many parts counts once for each of them, because the request
// has its bytes as often.
func TestRepeatedFileCountsForEachPart(t *testing.T) {
	t.Parallel()
	var received []llm.Part
	fixture := setup(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		received = req.Messages[len(req.Messages)-1].Parts
		return textAnswer("seen")
	})
	store, err := files.Open(t.Context(), fixture.log, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fixture.acts.Files = activities.NewFileStore(store)
	pdf := append([]byte("%PDF-1.7\n"), make([]byte, 14<<20)...)
	f, err := store.Put(t.Context(), files.Upload{Tenant: "default", Thread: "t1", Body: bytes.NewReader(pdf)})
	if err != nil {
		t.Fatal(err)
	}
	part := agui.ContentPart{Type: agui.PartDocument, Source: &agui.PartSource{Type: agui.SourceURL, Value: f.URL(), MimeType: "application/pdf"}}
	fixture.more = []agui.Message{{ID: "u2", Role: agui.RoleUser, Content: agui.PartsContent(slices.Repeat([]agui.ContentPart{part}, 5))}}
	events, _ := fixture.run("hello")
	dropped := 0
	for _, event := range events {
		if event, ok := event.(*agui.Custom); ok && event.Name == "perdure.contentDropped" {
			dropped++
		}
	}
	if len(received) != 2 || dropped != 3 {
		t.Errorf("parts of 14 MiB: %d received and %d dropped, want 2 and 3", len(received), dropped)
	}
}

// TestRemoteAgentReceivesBytesOfFiles: a remote agent receives the bytes of a file in base64, and a text in
// place of one that is missing. The thread keeps the URL, also if the agent repeats its messages.
func TestRemoteAgentReceivesBytesOfFiles(t *testing.T) {
	t.Parallel()
	fixture := setup(t, noModel)
	store, err := files.Open(t.Context(), fixture.log, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fixture.acts.Files = activities.NewFileStore(store)
	png := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 20<<10)...)
	f, err := store.Put(t.Context(), files.Upload{Tenant: "default", Thread: "t1", Body: bytes.NewReader(png)})
	if err != nil {
		t.Fatal(err)
	}
	data := base64.StdEncoding.EncodeToString(png)
	var received []agui.Message
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in agui.RunAgentInput
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		received = in.Messages
		repeated, err := json.Marshal(append(in.Messages, agui.Message{ID: "answer", Role: agui.RoleAssistant, Content: agui.TextContent("Seen.")}))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		ids := fmt.Sprintf(`"threadId":%q,"runId":%q`, in.ThreadID, in.RunID)
		w.Header().Set("Content-Type", "text/event-stream")
		writeEvents(w, 1, `{"type":"RUN_STARTED",`+ids+`}`, `{"type":"MESSAGES_SNAPSHOT","messages":`+string(repeated)+`}`, `{"type":"RUN_FINISHED",`+ids+`}`)
	}))
	t.Cleanup(s.Close)
	fixture.acts.Remotes = activities.RemoteAgents{Client: remote.NewClient(&http.Transport{DisableKeepAlives: true}), Secret: func(string) string { return "" }}
	fixture.agent = &agents.Definition{Name: "a", Remote: &agents.Remote{URL: s.URL}}
	fixture.more = []agui.Message{{ID: "u2", Role: agui.RoleUser, Content: agui.PartsContent([]agui.ContentPart{
		{Type: agui.PartImage, Source: &agui.PartSource{Type: agui.SourceURL, Value: f.URL(), MimeType: "image/png"}},
		{Type: agui.PartDocument, Source: &agui.PartSource{Type: agui.SourceURL, Value: "/v1/files/file_none"}},
	})}}
	if _, result := fixture.run("hello"); result.Outcome != runs.OutcomeSuccess {
		t.Fatalf("result = %+v, want success", result)
	}
	parts := received[len(received)-1].Content.Parts()
	if len(parts) != 2 || parts[0].Source == nil || parts[0].Source.Value != data || parts[1].Text != "[document left out: file_not_found]" {
		t.Errorf("the agent has received %.200v, want the bytes of the image and a text", parts)
	}
	snap, err := fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(snap.Entries)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw, []byte(data)) || !bytes.Contains(raw, []byte(f.URL())) || !bytes.Contains(raw, []byte("Seen.")) {
		t.Errorf("the conversation has %d bytes, want the URL, the answer and no data", len(raw))
	}
}

// TestStreamingRemoteHoldsNoFiles: a remote agent that streams for long does not block the files of other
// requests: at its first event the worker has room for them again.
func TestStreamingRemoteHoldsNoFiles(t *testing.T) {
	t.Parallel()
	fixture := setup(t, noModel)
	store, err := files.Open(t.Context(), fixture.log, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const room = 32 << 10
	fixture.acts.Files = activities.NewSmallFileStore(store, room)
	f, err := store.Put(t.Context(), files.Upload{Tenant: "default", Name: "a.pdf", Thread: "t1", Body: bytes.NewReader(make([]byte, 20<<10))})
	if err != nil {
		t.Fatal(err)
	}
	url, _ := fixture.serveRemote(func(_ int, started, finished string, w http.ResponseWriter, r *http.Request) {
		writeEvents(w, 1, started, `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`)
		ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
		defer cancel()
		if err := fixture.acts.Files.TakeRoom(ctx, room); err != nil {
			t.Errorf("while the agent streams, another request waits for room: %v", err)
		}
		writeEvents(w, 3, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Seen."}`, `{"type":"TEXT_MESSAGE_END","messageId":"m"}`, finished)
	})
	fixture.agent = &agents.Definition{Name: "a", Remote: &agents.Remote{URL: url}}
	fixture.more = []agui.Message{{ID: "u2", Role: agui.RoleUser, Content: agui.PartsContent([]agui.ContentPart{
		{Type: agui.PartDocument, Source: &agui.PartSource{Type: agui.SourceURL, Value: f.URL(), MimeType: "application/pdf"}},
	})}}
	if _, result := fixture.run("hello"); result.Outcome != runs.OutcomeSuccess {
		t.Errorf("result = %+v, want success", result)
	}
}
