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

// response turns the events of one response into chunks.
type response struct {
	wire.Completion
	model *Responses
	req   *llm.Request

	items   map[int64]*item // by the provider's index
	text    wire.Mender
	message *item // that text comes from
	slots   int64 // calls so far
	thought thought

	done bool // the event that ends the response has come
}

// item is a part of the output that has begun.
type item struct {
	slot  int64 // of a call, in the order of the calls
	heard bool  // something of it has come
}

func newResponse(r *Responses, req *llm.Request) *response {
	return &response{Completion: wire.NewCompletion(req, r.config.Provider, r.limits), model: r, req: req, items: map[int64]*item{}}
}

// responseEvent is what any event may carry. Texts stay as they are written: decoding
// would lose characters that were cut in two.
type responseEvent struct {
	Type         string          `json:"type"`
	OutputIndex  int64           `json:"output_index"`
	SummaryIndex int64           `json:"summary_index"`
	ContentIndex int64           `json:"content_index"`
	Delta        json.RawMessage `json:"delta"`
	Item         json.RawMessage `json:"item"`
	Response     *state          `json:"response"`
	Error        json.RawMessage `json:"error"`
}

// state is how a response stands.
type state struct {
	Model      json.RawMessage          `json:"model"`
	Status     string                   `json:"status"`
	Error      json.RawMessage          `json:"error"`
	Incomplete struct{ Reason string }  `json:"incomplete_details"`
	Usage      *responses.ResponseUsage `json:"usage"`
}

// output is an item of the output, begun or done.
type output struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Phase     string          `json:"phase"`
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

// Over reports whether the event that ends the response has come.
func (a *response) Over() bool { return a.done }

// Read takes one event.
func (a *response) Read(raw ssestream.Event) error {
	data := bytes.TrimSpace(raw.Data)
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		return nil // some servers say so too; what counts has come before
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

// follow takes an event that is no error. Those of other types repeat what is
// told by these.
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

// at returns the item with the provider's index.
func (a *response) at(index int64) *item {
	if a.items[index] == nil {
		a.items[index] = &item{slot: -1}
	}
	return a.items[index]
}

// begin takes the beginning of an item, which is also what the reasoning before
// it led to.
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
		a.endReasoning(nil) // we have no place for such an item, so neither for what led to it
	}
	return nil
}

// call opens a tool call. The reasoning before it ends first, but has to know
// the id that the call gets.
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

func (a *response) argue(at *item, literal json.RawMessage) error {
	piece := a.Unquote(literal)
	if at.slot < 0 {
		return wire.Malformed("arguments of a tool call that did not begin")
	}
	at.heard = at.heard || piece != ""
	return a.AddCall(at.slot, "", "", piece)
}

func (a *response) addText(at *item, literal json.RawMessage) {
	piece := a.Unquote(literal)
	at.heard = at.heard || piece != ""
	text := a.text.Mend(piece)
	if text == "" {
		return
	}
	a.endReasoning(nil)
	if a.message != nil && a.message != at {
		text = "\n\n" + text // for us they are one text
	}
	a.message = at
	a.Emit(llm.TextDelta{Text: text})
}

// complete takes an item that is done. Servers that stream no deltas tell only
// now what is in it, some not even that it began.
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
	if !at.heard {
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
