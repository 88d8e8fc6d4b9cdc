package kit

import (
	"testing"

	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/proxy"

	historypb "go.temporal.io/api/history/v1"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// inspect checks every workflow of the namespace: none may hold content, all must replay.
func (p *Endpoint) inspect(ctx context.Context) error { return p.eachWorkflow(ctx, inspectExecution) }

// SaveHistories saves the histories of all workflows. It is for namespaces whose workflows only
// their own worker can replay.
func (p *Endpoint) SaveHistories(ctx context.Context) error {
	return p.eachWorkflow(ctx, func(ctx context.Context, c client.Client, e *workflowpb.WorkflowExecutionInfo) error {
		history, err := FetchHistory(ctx, c, e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId())
		if err == nil {
			_, err = save(history)
		}
		return err
	})
}

// eachWorkflow waits until all workflows of the namespace have ended and calls look for each. The
// timeout is per workflow, since there may be thousands.
func (p *Endpoint) eachWorkflow(ctx context.Context, look func(context.Context, client.Client, *workflowpb.WorkflowExecutionInfo) error) error {
	brief, cancel := context.WithTimeout(ctx, WaitTimeout)
	defer cancel()
	c, err := p.DialTemporal(brief)
	if err != nil {
		return err
	}
	defer c.Close()
	executions, err := finishedExecutions(brief, c, p.Threads.count())
	if err != nil {
		return err
	}
	errs := make([]error, len(executions))
	var g errgroup.Group
	g.SetLimit(4)
	for i, e := range executions {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, WaitTimeout)
			defer cancel()
			if err := look(ctx, c, e); err != nil {
				errs[i] = fmt.Errorf("workflow %s: %w", e.GetExecution().GetWorkflowId(), err)
			}
			return nil
		})
	}
	_ = g.Wait()
	return errors.Join(errs...)
}

// DialTemporal returns a Temporal client for the endpoint's namespace.
func (p *Endpoint) DialTemporal(ctx context.Context) (client.Client, error) {
	where, err := p.Addresses(ctx)
	if err != nil {
		return nil, err
	}
	return client.DialContext(ctx, client.Options{
		HostPort: where.Temporal, Namespace: where.Namespace, DataConverter: runs.DataConverter(), Logger: silent{},
	})
}

// finishedExecutions waits until there are at least so many workflows and none runs, and lists
// them. Temporal's list is eventually consistent.
func finishedExecutions(ctx context.Context, c client.Client, atLeast int) ([]*workflowpb.WorkflowExecutionInfo, error) {
	for {
		all, err := ListExecutions(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("waiting for %d workflows: %w", atLeast, err)
		}
		running := 0
		for _, e := range all {
			if e.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
				continue
			}
			running++
			// Get returns when the workflow has ended. Its result does not matter.
			_ = c.GetWorkflow(ctx, e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId()).Get(ctx, nil)
		}
		if running == 0 && len(all) >= atLeast {
			return all, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%d of %d workflows, %d still run: %w", len(all), atLeast, running, ctx.Err())
		}
	}
}

// ListExecutions lists all workflow executions of the namespace.
func ListExecutions(ctx context.Context, c client.Client) ([]*workflowpb.WorkflowExecutionInfo, error) {
	var all []*workflowpb.WorkflowExecutionInfo
	for req := (&workflowservice.ListWorkflowExecutionsRequest{PageSize: 500}); ; {
		page, err := c.ListWorkflow(ctx, req)
		if err != nil {
			return nil, err
		}
		all = append(all, page.GetExecutions()...)
		if req.NextPageToken = page.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return all, nil
		}
	}
}

// inspectExecution checks the history of an execution.
func inspectExecution(ctx context.Context, c client.Client, e *workflowpb.WorkflowExecutionInfo) error {
	history, err := FetchHistory(ctx, c, e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId())
	if err != nil {
		return err
	}
	return errors.Join(searchMessage(e), searchHistory(history), replay(history))
}

// FetchHistory returns the history of one execution; runID "" = the latest.
func FetchHistory(ctx context.Context, c client.Client, workflowID, runID string) (*historypb.History, error) {
	history := &historypb.History{}
	events := c.GetWorkflowHistory(ctx, workflowID, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, err
		}
		history.Events = append(history.Events, e)
	}
	return history, nil
}

// searchHistory finds content in a history.
func searchHistory(h *historypb.History) error {
	for _, e := range h.GetEvents() {
		if err := searchMessage(e); err != nil {
			return fmt.Errorf("event %d, %s: %w", e.GetEventId(), e.GetEventType(), err)
		}
	}
	return nil
}

// searchMessage looks for content in a message, payloads included.
func searchMessage(m proto.Message) error {
	raw, err := proto.Marshal(m)
	if err == nil && bytes.Contains(raw, []byte(Mark)) {
		text, _ := protojson.Marshal(m)
		return fmt.Errorf("it has content: %.2000s", text)
	}
	return err
}

// replay saves a history and replays it with the current workflows.
func replay(h *historypb.History) error {
	file, err := save(h)
	if err != nil {
		return err
	}
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		DataConverter: runs.DataConverter(), DisableDeadlockDetection: true, // it fails on a busy machine
	})
	if err != nil {
		return err
	}
	workflows.Register(replayer, nil)
	// The IDs of child workflows derive from the parent's ID.
	id := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()
	options := worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: id}}
	if err := replayer.ReplayWorkflowHistoryWithOptions(silent{}, h, options); err != nil {
		return fmt.Errorf("replay of %s: %w", file, err)
	}
	return nil
}

// histories is the directory of the saved histories.
var histories string

// save writes a history to a file.
func save(h *historypb.History) (file string, err error) {
	body, err := protojson.Marshal(h)
	if err != nil {
		return "", err
	}
	file = filepath.Join(histories, h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()+".json")
	return file, os.WriteFile(file, body, 0o600)
}

// searchDatabase looks for content in Temporal's database. Besides histories it has pending
// activities with failures and heartbeats, queues and visibility.
func searchDatabase(data string) error {
	files, err := filepath.Glob(filepath.Join(data, "temporal.db*"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, errors.New("there is not a Temporal database"))
	}
	return searchFiles(files)
}

// maxWalks bounds the walks of WantNoContent through a directory whose files change.
const maxWalks = 20

// WantNoContent looks for content in all files of a data directory, in plain and in base64. It begins again if
// a server renames or removes a file meanwhile.
func WantNoContent(t *testing.T, when, data string) {
	t.Helper()
	walk := func() error {
		return filepath.WalkDir(data, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			body, err := os.ReadFile(path)
			if form := contentIn(body); form != "" {
				t.Errorf("%s: %s in %s", when, form, path)
			}
			return err
		})
	}
	err := walk()
	for range maxWalks {
		if errors.Is(err, fs.ErrNotExist) {
			err = walk()
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// contentIn returns in which form a text has content; "" = in none.
func contentIn(body []byte) string {
	if bytes.Contains(body, []byte(Mark)) {
		return "content"
	}
	for shift := range 3 { // the mark may begin at any byte of a group of three
		encoded := base64.StdEncoding.EncodeToString(append(make([]byte, shift), Mark...))
		if bytes.Contains(body, []byte(encoded[4:len(encoded)-4])) {
			return "content in base64"
		}
	}
	return ""
}

// searchFiles finds content in files.
func searchFiles(files []string) error {
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if at := bytes.Index(body, []byte(Mark)); at >= 0 {
			return fmt.Errorf("content in %s: %q", filepath.Base(file), body[max(0, at-200):min(len(body), at+100)])
		}
	}
	return nil
}

// silent is a logger that discards. The errors of its clients are returned anyway.
type silent struct{}

var _ sdklog.Logger = silent{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

// LargestPayload returns the size in bytes of the largest payload in a history.
func LargestPayload(t *testing.T, h *historypb.History) int {
	t.Helper()
	largest := 0
	err := proxy.VisitPayloads(t.Context(), h, proxy.VisitPayloadsOptions{
		Visitor: func(_ *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
			for _, p := range payloads {
				largest = max(largest, len(p.GetData()))
			}
			return payloads, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return largest
}

// History waits until a thread's workflow has ended and fetches its history.
func (p *Endpoint) History(t *testing.T, in Input) *historypb.History {
	t.Helper()
	c, err := p.DialTemporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	workflowID := "thread/default/" + in.ThreadID
	if err := c.GetWorkflow(t.Context(), workflowID, "").Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	history, err := FetchHistory(t.Context(), c, workflowID, "")
	if err != nil {
		t.Fatal(err)
	}
	return history
}

// Histories returns the histories of all executions of a thread, the latest first.
func (p *Endpoint) Histories(t *testing.T, in Input) []*historypb.History {
	t.Helper()
	c, err := p.DialTemporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var all []*historypb.History
	for execution := ""; ; {
		h, err := FetchHistory(t.Context(), c, "thread/default/"+in.ThreadID, execution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
		if execution = h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId(); execution == "" {
			return all
		}
	}
}

// ActivityOf returns the type of the activity that an event schedules, or of the local activity whose
// end it records; "" = neither.
func ActivityOf(t *testing.T, e *historypb.HistoryEvent) string {
	t.Helper()
	marker := e.GetMarkerRecordedEventAttributes()
	if marker.GetMarkerName() != "LocalActivity" {
		return e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
	}
	var local struct{ ActivityType string }
	if err := json.Unmarshal(marker.GetDetails()["data"].GetPayloads()[0].GetData(), &local); err != nil {
		t.Fatalf("marker of event %d: %v", e.GetEventId(), err)
	}
	return local.ActivityType
}
