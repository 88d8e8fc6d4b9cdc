package decisions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// editPointer returns the pointer to edited arguments, which entries of resume name differently.
func editPointer(at string) string {
	if at == "" {
		return "/args"
	}
	return at + "/editedArgs"
}

// aboutLimit completes such an edit: its arguments become all figures, with the allowed value that
// it names, so that the same value is the same decision however it is written. It returns other
// requests unchanged.
func (v Request) aboutLimit(thread *snapshot.Snapshot, question *agui.Interrupt, at string) (Request, error) {
	asked, err := stream.ApprovalSourceOf(*question)
	if asked == nil || err != nil || asked.Step != pipeline.LimitPath || v.Decision != string(runs.DecisionEdit) {
		return v, err
	}
	var shown pipeline.Figures
	arguments := findCall(thread, question.ToolCallID).Arguments
	if err := json.Unmarshal([]byte(arguments), &shown); err != nil {
		return v, fmt.Errorf("api: question %s: figures: %w", question.ID, err)
	}
	said, err := namedFigure(arguments, v.Args, at)
	if err != nil {
		return v, err
	}
	shown, v.allowed, err = shown.Allow(said)
	if err != nil {
		return v, InvalidAnswer(editPointer(at)+"/allowed", err.Error())
	}
	if v.Args, err = json.Marshal(shown); err != nil {
		return v, fmt.Errorf("api: encode figures: %w", err)
	}
	return v, nil
}

// namedFigure returns the allowed value that an edit names. Clients may also send the other
// figures, unchanged.
func namedFigure(arguments string, args json.RawMessage, at string) (json.RawMessage, error) {
	var was, edited map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &was); err != nil {
		return nil, fmt.Errorf("api: figures: %w", err)
	}
	if err := json.Unmarshal(args, &edited); err != nil {
		return nil, InvalidAnswer(editPointer(at), "must be an object with allowed: how far the run may go")
	}
	for name, value := range edited {
		if name != "allowed" && !bytes.Equal(value, was[name]) {
			return nil, InvalidAnswer(editPointer(at), "allowed is what can be changed, and nothing else")
		}
	}
	return edited["allowed"], nil
}

// suitsLimit refuses an invalid decision about a limit.
func (v Request) suitsLimit(at string) error {
	switch {
	case v.Decision == string(runs.DecisionAnswer):
		return InvalidAnswer(at+"/content", "the question is whether the run may go on: approve, edit or reject")
	case v.Remember != "":
		return InvalidAnswer(at+"/remember", "each limit that a run passes is asked about")
	}
	return nil
}

// contentPointer returns the position of an answer. An entry of resume for a question is nothing
// but the answer.
func contentPointer(at string) string {
	if at == "" {
		return "/content"
	}
	return at
}

// Request is a decision that a client asks for, as in the approval routes.
type Request struct {
	Decision string          `json:"decision"` // approve, reject, edit, answer; cancel only in resume
	Args     json.RawMessage `json:"args,omitempty"`
	// Content is a text that replaces the call's result, or the answer to the tool's question.
	Content json.RawMessage `json:"content,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	// Remember is the scope of an approval that covers further calls.
	Remember Remember `json:"remember,omitempty"`
	// allowed is the figure of an edit about a soft limit.
	allowed int64
}

// Remember is the scope of an approval that covers further calls, as a client writes it; "" = none.
type Remember string

// UnmarshalJSON reads true as the scope arguments. It accepts any value; isKnown checks the scope.
func (r *Remember) UnmarshalJSON(raw []byte) error {
	switch string(raw) {
	case "true":
		*r = Remember(runs.RememberArguments)
	case "false", "null":
		*r = ""
	default:
		if json.Unmarshal(raw, (*string)(r)) != nil || *r == "" {
			*r = "?"
		}
	}
	return nil
}

func (r Remember) isKnown() bool {
	return r == "" || r == Remember(runs.RememberArguments) || r == Remember(runs.RememberTool)
}

// Check validates the members of a request; at is the pointer to it in the request.
func (v Request) Check(at string) error {
	switch {
	case v.Decision == string(runs.DecisionEdit) && !isObject(v.Args):
		return InvalidAnswer(editPointer(at), "must be an object: the arguments to make the call with")
	case v.Decision == string(runs.DecisionAnswer) && len(v.Content) == 0:
		return InvalidAnswer(contentPointer(at), "must be the answer, or the result to give the model")
	case !v.Remember.isKnown():
		return InvalidAnswer(at+"/remember", `must be true, "arguments" or "tool"`)
	case v.Remember != "" && v.Decision != string(runs.DecisionApprove):
		return InvalidAnswer(at+"/remember", "belongs to an approval of the call as it is")
	case len(v.Reason) > commands.MaxReasonBytes:
		return InvalidAnswer(at+"/reason", fmt.Sprintf("must be at most %d bytes", commands.MaxReasonBytes))
	}
	switch runs.DecisionKind(v.Decision) {
	case runs.DecisionApprove, runs.DecisionEdit, runs.DecisionReject, runs.DecisionAnswer:
		return nil
	}
	return InvalidAnswer(at+"/decision", `must be "approve", "edit", "reject" or "answer"`)
}

// normalized returns the request as it is proposed: an edit to the arguments that the model wrote
// is an approval of them, and one about a soft limit has all figures.
func (v Request) normalized(thread *snapshot.Snapshot, question *agui.Interrupt, at string) (Request, error) {
	asked, err := stream.ApprovalSourceOf(*question)
	if asked == nil || err != nil || v.Decision != string(runs.DecisionEdit) {
		return v, err
	}
	if asked.Step == pipeline.LimitPath {
		return v.aboutLimit(thread, question, at)
	}
	// An edit that was decided has replaced the arguments in the conversation.
	written := findCall(thread, question.ToolCallID).Arguments
	if runs.DigestArgs(written) == asked.ArgsDigest && sameText(v.Args, []byte(written)) {
		return Request{Decision: string(runs.DecisionApprove), Reason: v.Reason}, nil
	}
	return v, nil
}

// sameText reports whether two JSON texts differ in white space only.
func sameText(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// InvalidAnswer returns the problem of a request that does not fit its interrupt.
func InvalidAnswer(pointer, detail string) *problem.Problem {
	p := problem.New(http.StatusUnprocessableEntity, "invalid_answer", detail)
	p.Pointer = pointer
	return p
}

func isObject(raw json.RawMessage) bool {
	return len(bytes.TrimSpace(raw)) > 0 && bytes.TrimSpace(raw)[0] == '{'
}

// requestOf reads an entry of resume, whose payload has the form of the interrupt's responseSchema.
func requestOf(question *agui.Interrupt, entry agui.ResumeEntry, at string) (Request, error) {
	switch {
	case entry.Status == agui.ResumeCancelled:
		return Request{Decision: string(runs.DecisionCancel)}, nil
	case IsQuestion(question):
		v := Request{Decision: string(runs.DecisionAnswer), Content: entry.Payload}
		return v, v.Check(at + "/payload")
	}
	var payload struct {
		Approved   *bool           `json:"approved"`
		EditedArgs json.RawMessage `json:"editedArgs"`
		Content    *string         `json:"content"`
		Reason     string          `json:"reason"`
		Remember   Remember        `json:"remember"`
	}
	if err := json.Unmarshal(entry.Payload, &payload); err != nil || payload.Approved == nil {
		return Request{}, InvalidAnswer(at+"/payload", "must be an object as the question's responseSchema describes it, with approved true or false")
	}
	v := Request{Args: payload.EditedArgs, Reason: payload.Reason, Remember: payload.Remember}
	switch {
	case *payload.Approved && len(payload.EditedArgs) > 0:
		v.Decision = string(runs.DecisionEdit)
	case *payload.Approved:
		v.Decision = string(runs.DecisionApprove)
	case payload.Content != nil:
		content, err := json.Marshal(*payload.Content)
		if err != nil {
			return v, fmt.Errorf("api: encode content: %w", err)
		}
		v.Decision, v.Content = string(runs.DecisionAnswer), content
	default:
		v.Decision = string(runs.DecisionReject)
	}
	return v, v.Check(at + "/payload")
}
