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

// editPointer returns the JSON pointer to edited arguments. pointer is that of the decision: ""
// in a request of the approval routes, whose member is args; else an entry of resume, whose member
// is editedArgs.
func editPointer(pointer string) string {
	if pointer == "" {
		return "/args"
	}
	return pointer + "/editedArgs"
}

// withLimitArguments completes an edit of a soft limit. A client names only the new allowed value;
// withLimitArguments adds the other arguments of the interrupt. So the same value is the same
// decision, however the client writes it. It returns other requests unchanged. An invalid value is
// a 422.
func (r Request) withLimitArguments(snap *snapshot.Snapshot, interrupt *agui.Interrupt, pointer string) (Request, error) {
	source, err := stream.ApprovalSourceOf(*interrupt)
	if source == nil || err != nil || source.Step != pipeline.LimitPath || r.Decision != string(runs.DecisionEdit) {
		return r, err
	}
	var args pipeline.LimitArguments
	call, _ := snap.FindCall(interrupt.ToolCallID)
	arguments := call.Arguments
	if err := json.Unmarshal([]byte(arguments), &args); err != nil {
		return r, fmt.Errorf("api: interrupt %s: arguments: %w", interrupt.ID, err)
	}
	allowed, err := allowedAmount(arguments, r.Args, pointer)
	if err != nil {
		return r, err
	}
	args, r.allowed, err = args.Allow(allowed)
	if err != nil {
		return r, InvalidAnswer(editPointer(pointer)+"/allowed", err.Error())
	}
	if r.Args, err = json.Marshal(args); err != nil {
		return r, fmt.Errorf("api: encode arguments of a limit: %w", err)
	}
	return r, nil
}

// allowedAmount returns the allowed value that an edit of a soft limit names. arguments are those
// of the interrupt, args those of the edit. A client may also send the others unchanged;
// changing one is a 422.
func allowedAmount(arguments string, args json.RawMessage, pointer string) (json.RawMessage, error) {
	var original, edited map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &original); err != nil {
		return nil, fmt.Errorf("api: arguments of a limit: %w", err)
	}
	if err := json.Unmarshal(args, &edited); err != nil {
		return nil, InvalidAnswer(editPointer(pointer), "must be an object with allowed, the new limit")
	}
	for name, value := range edited {
		if name != "allowed" && !bytes.Equal(value, original[name]) {
			return nil, InvalidAnswer(editPointer(pointer), "only allowed can be changed")
		}
	}
	return edited["allowed"], nil
}

// checkLimit returns a 422 for a decision that a soft limit does not have: an answer, or an
// approval that is remembered.
func (r Request) checkLimit(pointer string) error {
	switch {
	case r.Decision == string(runs.DecisionAnswer):
		return InvalidAnswer(pointer+"/content", "must not be set for a limit: approve, edit or reject it")
	case r.Remember != "":
		return InvalidAnswer(pointer+"/remember", "must not be set for a limit: each exceeded limit needs its own decision")
	}
	return nil
}

// contentPointer returns the JSON pointer to an answer. The payload of an entry of resume for a
// question is the answer itself.
func contentPointer(pointer string) string {
	if pointer == "" {
		return "/content"
	}
	return pointer
}

// Request is a decision that a client requests, in the form of the approval routes. Entries of
// resume are converted to it. Check validates its members; checkDecider validates it against its
// interrupt.
type Request struct {
	Decision string          `json:"decision"` // approve, reject, edit, answer; cancel only in resume
	Args     json.RawMessage `json:"args,omitempty"`
	// Content is the answer to a tool's question, or a JSON string that replaces the result of a
	// call that is not made.
	Content json.RawMessage `json:"content,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	// Remember is the scope of an approval that also covers further calls; "" = only this call.
	Remember Remember `json:"remember,omitempty"`
	// allowed is the new value of a soft limit, in the limit's units. Only normalize sets it.
	allowed int64
}

// Remember is the scope of an approval that covers further calls, as a client writes it:
// "arguments" or true, "tool", or none ("", false, null).
type Remember string

// UnmarshalJSON implements json.Unmarshaler. true is the scope arguments. It never fails: an
// invalid value becomes an unknown scope, which Check refuses with a pointer.
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

// isKnown reports whether the scope is none or one that the workflow has.
func (r Remember) isKnown() bool {
	return r == "" || r == Remember(runs.RememberArguments) || r == Remember(runs.RememberTool)
}

// tooDeep is the detail of errors about agui.MaxDepth. A deeper value could be stored, but not be
// read again inside a record.
var tooDeep = fmt.Sprintf("is nested deeper than %d levels", agui.MaxDepth)

// Check validates the members of a request without its interrupt. pointer is the JSON pointer to
// the request; errors are 422 invalid_answer.
func (r Request) Check(pointer string) error {
	switch {
	case r.Decision == string(runs.DecisionEdit) && !isObject(r.Args):
		return InvalidAnswer(editPointer(pointer), "must be an object with all arguments of the call")
	case r.Decision == string(runs.DecisionAnswer) && len(r.Content) == 0:
		return InvalidAnswer(contentPointer(pointer), "must be the answer, or the result for the model")
	case agui.TooDeep(r.Args):
		return InvalidAnswer(editPointer(pointer), tooDeep)
	case agui.TooDeep(r.Content):
		return InvalidAnswer(contentPointer(pointer), tooDeep)
	case !r.Remember.isKnown():
		return InvalidAnswer(pointer+"/remember", `must be true, "arguments" or "tool"`)
	case r.Remember != "" && r.Decision != string(runs.DecisionApprove):
		return InvalidAnswer(pointer+"/remember", "is only for the decision approve")
	case len(r.Reason) > commands.MaxReasonBytes:
		return InvalidAnswer(pointer+"/reason", fmt.Sprintf("must be at most %d bytes", commands.MaxReasonBytes))
	}
	switch runs.DecisionKind(r.Decision) {
	case runs.DecisionApprove, runs.DecisionEdit, runs.DecisionReject, runs.DecisionAnswer:
		return nil
	}
	return InvalidAnswer(pointer+"/decision", `must be "approve", "edit", "reject" or "answer"`)
}

// normalize returns the request as it is proposed, so that equal decisions have equal digests. An
// edit to the arguments that the model wrote becomes an approval; an edit of a soft limit gets all
// arguments. pointer is the JSON pointer to the request.
func (r Request) normalize(snap *snapshot.Snapshot, interrupt *agui.Interrupt, pointer string) (Request, error) {
	source, err := stream.ApprovalSourceOf(*interrupt)
	if source == nil || err != nil || r.Decision != string(runs.DecisionEdit) {
		return r, err
	}
	if source.Step == pipeline.LimitPath {
		return r.withLimitArguments(snap, interrupt, pointer)
	}
	// Once an edit was carried out, the conversation has the edited arguments. Then the digest
	// differs, and the comparison would be with the wrong ones.
	call, _ := snap.FindCall(interrupt.ToolCallID)
	written := call.Arguments
	if runs.DigestArgs(written) == source.ArgsDigest && sameText(r.Args, []byte(written)) {
		return Request{Decision: string(runs.DecisionApprove), Reason: r.Reason}, nil
	}
	return r, nil
}

// sameText reports whether two JSON texts are valid and differ in white space only. The order of
// members counts.
func sameText(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// InvalidAnswer returns the 422 for a decision that does not fit its interrupt. pointer names the
// member.
func InvalidAnswer(pointer, detail string) *problem.Problem {
	p := problem.New(http.StatusUnprocessableEntity, "invalid_answer", detail)
	p.Pointer = pointer
	return p
}

// isObject reports whether JSON is an object, by its first character.
func isObject(raw json.RawMessage) bool {
	return len(bytes.TrimSpace(raw)) > 0 && bytes.TrimSpace(raw)[0] == '{'
}

// requestOf converts an entry of resume to a Request, and checks it. The payload has the form of
// the interrupt's responseSchema: the answer itself for a question; approved, editedArgs, content,
// reason and remember for an approval. A cancelled entry is the decision cancel. pointer is the
// JSON pointer to the entry.
func requestOf(interrupt *agui.Interrupt, entry agui.ResumeEntry, pointer string) (Request, error) {
	switch {
	case entry.Status == agui.ResumeCancelled:
		return Request{Decision: string(runs.DecisionCancel)}, nil
	case IsQuestion(interrupt):
		req := Request{Decision: string(runs.DecisionAnswer), Content: entry.Payload}
		return req, req.Check(pointer + "/payload")
	}
	var payload struct {
		Approved   *bool           `json:"approved"`
		EditedArgs json.RawMessage `json:"editedArgs"`
		Content    *string         `json:"content"`
		Reason     string          `json:"reason"`
		Remember   Remember        `json:"remember"`
	}
	// approved has no default: a payload of another form must not become a rejection.
	if err := json.Unmarshal(entry.Payload, &payload); err != nil || payload.Approved == nil {
		return Request{}, InvalidAnswer(pointer+"/payload", "must be an object that fits the interrupt's responseSchema, with approved true or false")
	}
	req := Request{Args: payload.EditedArgs, Reason: payload.Reason, Remember: payload.Remember}
	switch {
	case *payload.Approved && len(payload.EditedArgs) > 0:
		req.Decision = string(runs.DecisionEdit)
	case *payload.Approved:
		req.Decision = string(runs.DecisionApprove)
	case payload.Content != nil:
		content, err := json.Marshal(*payload.Content)
		if err != nil {
			return req, fmt.Errorf("api: encode content: %w", err)
		}
		req.Decision, req.Content = string(runs.DecisionAnswer), content
	default:
		req.Decision = string(runs.DecisionReject)
	}
	return req, req.Check(pointer + "/payload")
}
