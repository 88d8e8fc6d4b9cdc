package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

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

	done bool // the event that ends the response has arrived
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
	Model      json.RawMessage          `json:"model"`
	Status     string                   `json:"status"`
	Error      json.RawMessage          `json:"error"`
	Incomplete struct{ Reason string }  `json:"incomplete_details"`
	Usage      *responses.ResponseUsage `json:"usage"`
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
func (a *response) Over() bool { return a.done }

// Read implements [wire.Reply].
func (a *response) Read(raw ssestream.Event) error {
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
		return a.model.api.Failed(a.req, fault)
	}
	if err := a.follow(e); err != nil {
		return err
	}
	return a.CheckSize()
}

// follow processes an event that is no error. It ignores other types, which repeat the content of
// these.
func (a *response) follow(e responseEvent) error {
	switch e.Type {
	case "response.output_item.added":
		return a.begin(e)
	case "response.output_item.done":
		return a.complete(e)
	case "response.output_text.delta", "response.refusal.delta":
		a.addText(a.at(e.OutputIndex), e.Delta)
	case "response.reasoning_summary_text.delta":
		a.think(a.at(e.OutputIndex), passage{e.Type, e.SummaryIndex}, e.Delta)
	case "response.reasoning_text.delta":
		a.think(a.at(e.OutputIndex), passage{e.Type, e.ContentIndex}, e.Delta)
	case "response.function_call_arguments.delta":
		return a.argue(a.at(e.OutputIndex), e.Delta)
	case "response.created", "response.in_progress":
		a.account(e.Response)
	case "response.completed", "response.incomplete", "response.failed":
		return a.conclude(strings.TrimPrefix(e.Type, "response."), e.Response)
	}
	return nil
}

// at returns the item with the output_index, and creates it if necessary.
func (a *response) at(index int64) *item {
	if a.items[index] == nil {
		a.items[index] = &item{slot: -1}
	}
	return a.items[index]
}

// begin processes the start of an item. The item is also the successor of the reasoning before it,
// so the open reasoning block ends here.
func (a *response) begin(e responseEvent) error {
	var o output
	if json.Unmarshal(e.Item, &o) != nil {
		return wire.Malformed("an item of the response is not a JSON object")
	}
	a.Received(len(e.Item))
	switch o.Type {
	case typeReasoning:
		a.endReasoning(&successor{Type: typeReasoning})
	case typeMessage:
		a.endReasoning(&successor{Type: typeMessage, ID: o.ID, Phase: o.Phase})
	case typeCall:
		return a.call(a.at(e.OutputIndex), o)
	default:
		// An item of unknown type is not part of the message, so the reasoning that led to it
		// cannot be sent back.
		a.endReasoning(nil)
	}
	return nil
}

// call starts a tool call. The reasoning block must end before the ToolCallStart, but its data
// contains the ID of the call. Therefore the chunks of Add are held back until the block has ended.
func (a *response) call(at *item, o output) error {
	id, _ := wire.Unquote(string(o.CallID))
	name, _ := wire.Unquote(string(o.Name))
	if at.slot < 0 {
		at.slot = a.slots
		a.slots++
	}
	started, err := a.Calls.Add(nil, at.slot, id, name, "")
	if err != nil {
		return err
	}
	// The call may have a generated ID, so the successor takes the ID from the chunk.
	for _, chunk := range started {
		if start, ok := chunk.(llm.ToolCallStart); ok {
			a.endReasoning(&successor{Type: typeCall, ID: o.ID, Call: start.ID})
		}
	}
	for _, chunk := range started {
		a.Emit(chunk)
	}
	return nil
}

// argue appends to the arguments of the call at.
func (a *response) argue(at *item, literal json.RawMessage) error {
	piece := a.Unquote(literal)
	if at.slot < 0 {
		return wire.Malformed("the provider sent arguments of a tool call before its start")
	}
	at.hasContent = at.hasContent || piece != ""
	return a.AddCall(at.slot, "", "", piece)
}

// addText appends to the text. A message has one text, so the texts of several message items are
// joined by blank lines.
func (a *response) addText(at *item, literal json.RawMessage) {
	piece := a.Unquote(literal)
	at.hasContent = at.hasContent || piece != ""
	text := a.text.Mend(piece)
	if text == "" {
		return
	}
	// Text can arrive without a start event. Then the successor is unknown.
	a.endReasoning(nil)
	if a.message != nil && a.message != at {
		text = "\n\n" + text
	}
	a.message = at
	a.Emit(llm.TextDelta{Text: text})
}

// complete processes the end of an item, which contains the whole item. Servers without deltas send
// the content only here, and some omit the start event as well.
func (a *response) complete(e responseEvent) error {
	if a.items[e.OutputIndex] == nil {
		if err := a.begin(e); err != nil {
			return err
		}
	}
	var o output
	if json.Unmarshal(e.Item, &o) != nil {
		return wire.Malformed("an item of the response is not a JSON object")
	}
	at := a.at(e.OutputIndex)
	if !at.hasContent {
		if err := a.catchUp(at, o); err != nil {
			return err
		}
	}
	if o.Type == typeReasoning {
		a.Received(len(e.Item))
		a.thought.item = storedReasoning(e.Item)
	}
	return nil
}

// catchUp emits the content of an item for which no deltas have arrived.
func (a *response) catchUp(at *item, o output) error {
	switch o.Type {
	case typeMessage:
		for _, part := range o.Content {
			a.addText(at, part.Text)
			a.addText(at, part.Refusal)
		}
	case typeReasoning:
		for i, part := range o.Summary {
			a.think(at, passage{"summary", int64(i)}, part.Text)
		}
	case typeCall:
		return a.argue(at, o.Arguments)
	}
	return nil
}
