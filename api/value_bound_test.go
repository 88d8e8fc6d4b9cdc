package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
)

// TestValuesOfBodiesAreBounded: every route and frame with JSON refuses one with too many values,
// before it decodes them, and names the member. The connection stays usable.
func TestValuesOfBodiesAreBounded(t *testing.T) {
	t.Parallel()
	node := setupInbox(t).node
	many := `[` + strings.Repeat("[],", agui.MaxValues) + `0]`
	input := `{"threadId":"t","runId":"r","messages":[],`
	for _, tt := range []struct{ path, body, pointer string }{
		{runsPath, input + `"state":` + many + `}`, "/state"},
		{runsPath, input + `"forwardedProps":{"a":` + many + `}}`, "/forwardedProps"},
		{runsPath, input + `"tools":[{"name":"n","description":"","parameters":{"enum":` + many + `}}]}`, "/tools"},
		{runsPath, input + `"resume":[{"interruptId":"i","status":"resolved","payload":` + many + `}]}`, "/resume"},
		{"/v1/threads/t/messages", `{"message":{"id":"m","role":"user","content":"","metadata":{"a":` + many + `}}}`, "/message"},
		{"/v1/threads/t/approvals/i", `{"decision":"edit","args":` + many + `}`, "/args"},
		{"/v1/threads/t/tool-results", `{"toolCallId":"c","content":` + many + `}`, "/content"},
		{"/v1/approvals/batch", `{"decisions":` + many + `}`, "/decisions"},
		{"/v1/streams", `{"streams":` + many + `}`, "/streams"},
		{"/v1/threads/t/runs/r/fork", many, ""},
	} {
		a := node.do(http.MethodPost, tt.path, tt.body)
		if a.status != http.StatusBadRequest || a.problem.Code != "invalid_input" || a.problem.Pointer != tt.pointer || !strings.Contains(a.problem.Detail, "200000 values") {
			t.Errorf("%s: got %d %.500s, want %d invalid_input at %q", tt.path, a.status, a.body, http.StatusBadRequest, tt.pointer)
		}
	}
	c := node.dial()
	for pointer, frame := range map[string]string{
		"/input":   `{"type":"run","agent":"a","input":` + input + `"state":` + many + `},"id":"1"}`,
		"/args":    `{"type":"decide","threadId":"t","approvalId":"i","decision":"edit","args":` + many + `,"id":"1"}`,
		"/content": `{"type":"tool_result","threadId":"t","toolCallId":"c","content":` + many + `,"id":"1"}`,
	} {
		c.send(frame)
		if f := c.next(); f.Type != "error" || f.ID != "1" || f.Code != "invalid_frame" || f.Pointer != pointer {
			t.Errorf("frame with many values: got %+v, want invalid_frame at %s", f, pointer)
		}
	}
	c.ping("2")
}

// TestDecisionsHaveBoundedDepth: a decision that could be stored but not be read again is refused.
func TestDecisionsHaveBoundedDepth(t *testing.T) {
	t.Parallel()
	f := setupInbox(t)
	id := f.openApprovals("t", "c")[0]
	deep := strings.Repeat("[", agui.MaxDepth+1) + strings.Repeat("]", agui.MaxDepth+1)
	for pointer, body := range map[string]string{
		"/args":    `{"decision":"edit","args":{"a":` + deep + `}}`,
		"/content": `{"decision":"answer","content":` + deep + `}`,
	} {
		a := f.do(http.MethodPost, "/v1/threads/t/approvals/"+id, body)
		if a.status != http.StatusUnprocessableEntity || a.problem.Code != "invalid_answer" || a.problem.Pointer != pointer {
			t.Errorf("deep value: got %d %.500s, want %d invalid_answer at %s", a.status, a.body, http.StatusUnprocessableEntity, pointer)
		}
	}
}
