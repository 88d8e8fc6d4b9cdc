package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// response converts the events of one response to chunks; it is the [wire.Reply] of the Responses
// API. The API sends an output of items: reasoning, messages and function calls. Items are
// identified by output_index, and each has events for its start, its deltas and its end.
type response struct {
	wire.Completion
	model *Responses
	req   *llm.Request

	items   map[int64]*item // by output_index
	text    wire.Mender     // joins split characters of the messages
	message *item           // item of the last text
	slots   int64           // calls started so far
	thought thought         // open reasoning block

	refused bool // the model refuses to answer
	done    bool // the event that ends the response has arrived
}

// item is the state of an output item.
type item struct {
	slot       int64 // number of the call, -1 for another item
	hasContent bool  // a delta has arrived, so its content is known
}

// newResponse returns the reply for one completion of req.
func newResponse(r *Responses, req *llm.Request) *response {
	return &response{Completion: wire.NewCompletion(req, r.config.Provider, r.limits), model: r, req: req, items: map[int64]*item{}}
}

// responseEvent is one event of the stream; Type determines which fields are set. Text fields stay
// undecoded JSON literals, because encoding/json would destroy a character that is split between
// two events ([wire.Unquote]).
type responseEvent struct {
	Type         string          `json:"type"`
	OutputIndex  int64           `json:"output_index"`
	SummaryIndex int64           `json:"summary_index"`
	ContentIndex int64           `json:"content_index"`
	Delta        json.RawMessage `json:"delta"`
	Item         json.RawMessage `json:"item"`
	Response     *responseObject `json:"response"`
	Error        json.RawMessage `json:"error"`
}

// responseObject is the response object of an event: the status of the response and, at its end,
// its usage.
type responseObject struct {
	Model      json.RawMessage         `json:"model"`
	Status     string                  `json:"status"`
	Error      json.RawMessage         `json:"error"`
	Incomplete struct{ Reason string } `json:"incomplete_details"`
	Usage      *responseUsage          `json:"usage"`
}

// output is an output item in the event of its start or end. Type determines which fields are set.
// At its start an item has no content.
type output struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Phase     string          `json:"phase"` // of a message
	CallID    json.RawMessage `json:"call_id"`
	Name      json.RawMessage `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Content   []struct {
		Text    json.RawMessage `json:"text"`
		Refusal json.RawMessage `json:"refusal"`
	} `json:"content"`
	Summary []struct {
		Text json.RawMessage `json:"text"`
	} `json:"summary"`
}

// Over implements [wire.Reply]: the event that ends the response has arrived.
func (r *response) Over() bool { return r.done }

// Read implements [wire.Reply].
func (r *response) Read(raw ssestream.Event) error {
	data := bytes.TrimSpace(raw.Data)
	// Some compatible servers end the stream like Chat Completions.
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		return nil
	}
	var e responseEvent
	if len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &e) != nil {
		return wire.Malformed("an event of the stream is not a JSON object")
	}
	if e.Type == "error" || wire.IsPresent(e.Error) {
		fault, _ := parseFault(data)
		return r.model.api.Failed(r.req, fault)
	}
	if err := r.readEvent(e); err != nil {
		return err
	}
	return r.CheckSize()
}

// readEvent processes an event that is no error. It ignores other types, which repeat the content
// of these.
func (r *response) readEvent(e responseEvent) error {
	switch e.Type {
	case "response.output_item.added":
		return r.begin(e)
	case "response.output_item.done":
		return r.complete(e)
	case "response.output_text.delta":
		r.addText(r.itemAt(e.OutputIndex), e.Delta)
	case "response.refusal.delta":
		r.addRefusal(r.itemAt(e.OutputIndex), e.Delta)
	case "response.reasoning_summary_text.delta":
		r.think(r.itemAt(e.OutputIndex), passage{e.Type, e.SummaryIndex}, e.Delta)
	case "response.reasoning_text.delta":
		r.think(r.itemAt(e.OutputIndex), passage{e.Type, e.ContentIndex}, e.Delta)
	case "response.function_call_arguments.delta":
		return r.addArguments(r.itemAt(e.OutputIndex), e.Delta)
	case "response.created", "response.in_progress":
		r.readUsage(e.Response)
	case "response.completed", "response.incomplete", "response.failed":
		return r.conclude(strings.TrimPrefix(e.Type, "response."), e.Response)
	}
	return nil
}

// itemAt returns the item with the output_index, and creates it if necessary.
func (r *response) itemAt(index int64) *item {
	if r.items[index] == nil {
		r.items[index] = &item{slot: -1}
	}
	return r.items[index]
}

// begin processes the start of an item. The item is also the successor of the reasoning before it,
// so the open reasoning block ends here.
func (r *response) begin(e responseEvent) error {
	var o output
	if json.Unmarshal(e.Item, &o) != nil {
		return wire.Malformed("an item of the response is not a JSON object")
	}
	r.Received(len(e.Item))
	switch o.Type {
	case typeReasoning:
		r.endReasoning(&successor{Type: typeReasoning})
	case typeMessage:
		r.endReasoning(&successor{Type: typeMessage, ID: o.ID, Phase: o.Phase})
	case typeCall:
		return r.call(r.itemAt(e.OutputIndex), o)
	default:
		// An item of unknown type is not part of the message, so the reasoning that led to it
		// cannot be sent back.
		r.endReasoning(nil)
	}
	return nil
}

// call starts a tool call. The reasoning block must end before the ToolCallStart, but its data
// contains the ID of the call. Therefore the chunks of Add are held back until the block has ended.
func (r *response) call(current *item, o output) error {
	id, _ := wire.Unquote(string(o.CallID))
	name, _ := wire.Unquote(string(o.Name))
	if current.slot < 0 {
		current.slot = r.slots
		r.slots++
	}
	started, err := r.Calls.Add(nil, current.slot, id, name, "")
	if err != nil {
		return err
	}
	// The call may have a generated ID, so the successor takes the ID from the chunk.
	for _, chunk := range started {
		if start, ok := chunk.(llm.ToolCallStart); ok {
			r.endReasoning(&successor{Type: typeCall, ID: o.ID, Call: start.ID})
		}
	}
	for _, chunk := range started {
		r.Emit(chunk)
	}
	return nil
}

// addArguments appends to the arguments of the call of an item.
func (r *response) addArguments(current *item, literal json.RawMessage) error {
	piece := r.Unquote(literal)
	if current.slot < 0 {
		return wire.Malformed("the provider sent arguments of a tool call before its start")
	}
	current.hasContent = current.hasContent || piece != ""
	return r.AddCall(current.slot, "", "", piece)
}

// addText appends to the text. A message has one text, so the texts of several message items are
// joined by blank lines.
func (r *response) addText(current *item, literal json.RawMessage) {
	piece := r.Unquote(literal)
	current.hasContent = current.hasContent || piece != ""
	text := r.text.Mend(piece)
	if text == "" {
		return
	}
	// Text can arrive without a start event. Then the successor is unknown.
	r.endReasoning(nil)
	if r.message != nil && r.message != current {
		text = "\n\n" + text
	}
	r.message = current
	r.Emit(llm.TextDelta{Text: text})
}

// addRefusal appends to the text, and notes that the model refuses to answer.
func (r *response) addRefusal(current *item, literal json.RawMessage) {
	r.addText(current, literal)
	r.refused = r.refused || hasText(literal)
}

// complete processes the end of an item, which contains the whole item. Servers without deltas send
// the content only here, and some omit the start event as well.
func (r *response) complete(e responseEvent) error {
	if r.items[e.OutputIndex] == nil {
		if err := r.begin(e); err != nil {
			return err
		}
	}
	var o output
	if json.Unmarshal(e.Item, &o) != nil {
		return wire.Malformed("an item of the response is not a JSON object")
	}
	current := r.itemAt(e.OutputIndex)
	if !current.hasContent {
		if err := r.addMissing(current, o); err != nil {
			return err
		}
	}
	if o.Type == typeReasoning {
		r.Received(len(e.Item))
		r.thought.item = storedReasoning(e.Item)
	}
	return nil
}

// addMissing emits the content of an item for which no deltas have arrived.
func (r *response) addMissing(current *item, o output) error {
	switch o.Type {
	case typeMessage:
		for _, part := range o.Content {
			r.addText(current, part.Text)
			r.addRefusal(current, part.Refusal)
		}
	case typeReasoning:
		for i, part := range o.Summary {
			r.think(current, passage{"summary", int64(i)}, part.Text)
		}
	case typeCall:
		return r.addArguments(current, o.Arguments)
	}
	return nil
}
