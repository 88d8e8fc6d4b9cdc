package wire

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/llm"
)

// Calls gives the tool calls of one completion an index, an id and a name each,
// whatever the server leaves out or repeats.
type Calls struct {
	max    int
	before int             // calls in the conversation so far, for ids of our own
	ids    map[string]bool // every id that is taken
	slots  map[int64]*call // the call that the server's index means now
	calls  map[int]*call   // by our index
}

// call is a tool call of the completion.
type call struct {
	index    int
	id, name string
	started  bool
	held     string // arguments that came before the name
	text     Mender
}

// NewCalls starts a completion of req with at most max calls.
func NewCalls(req *llm.Request, max int) *Calls {
	c := &Calls{max: max, ids: map[string]bool{}, slots: map[int64]*call{}, calls: map[int]*call{}}
	for _, message := range req.Messages {
		for _, known := range message.ToolCalls {
			c.before++
			c.ids[known.ID] = true
		}
	}
	return c
}

// Len returns the number of calls that were started.
func (c *Calls) Len() int {
	n := 0
	for _, call := range c.calls {
		if call.started {
			n++
		}
	}
	return n
}

// Add takes a piece of the call that the server numbers slot and appends to
// out what can be said about it. Any of id, name and arguments may be empty.
func (c *Calls) Add(out []llm.Chunk, slot int64, id, name, arguments string) ([]llm.Chunk, error) {
	id, name = strings.ToValidUTF8(id, "\uFFFD"), strings.ToValidUTF8(name, "\uFFFD")
	current, err := c.at(slot, id, name)
	if err != nil {
		return out, err
	}
	if !current.started && name != "" {
		c.name(current, id, name)
		out = append(out, llm.ToolCallStart{Index: current.index, ID: current.id, Name: current.name})
	} else if !current.started && id != "" {
		current.id = id
	}
	return current.argue(out, arguments), nil
}

// Finish ends the completion. With whole set, every call must have come whole
// enough to be named.
func (c *Calls) Finish(out []llm.Chunk, whole bool) ([]llm.Chunk, error) {
	for index := range c.max {
		current, ok := c.calls[index]
		switch {
		case !ok:
		case current.started:
			if rest := current.text.Flush(); rest != "" {
				out = append(out, llm.ToolCallDelta{Index: index, Arguments: rest})
			}
		case whole:
			return out, &llm.Error{Code: llm.CodeMalformedResponse, Message: "a tool call has no name"}
		}
	}
	return out, nil
}

// at finds the call that slot means. Some servers give all parallel calls the
// same slot: a new id together with a name is then a new call, whereas a new
// id alone is a server that makes up an id for each piece.
func (c *Calls) at(slot int64, id, name string) (*call, error) {
	current, ok := c.slots[slot]
	if ok && (!current.started || id == "" || name == "" || id == current.id) {
		return current, nil
	}
	if slot < 0 {
		return nil, &llm.Error{Code: llm.CodeMalformedResponse, Message: "a tool call has a negative index"}
	}
	if slot >= int64(c.max) || len(c.calls) >= c.max {
		return nil, TooLarge("the response has more than %d tool calls", c.max)
	}
	current = &call{index: c.free(int(slot))}
	c.slots[slot], c.calls[current.index] = current, current
	return current, nil
}

// free returns want, or the first index that no call has.
func (c *Calls) free(want int) int {
	if c.calls[want] == nil {
		return want
	}
	index := 0
	for c.calls[index] != nil {
		index++
	}
	return index
}

// name starts the call, with an id of our own if the server's is missing or
// taken: results are matched to calls by id alone.
func (c *Calls) name(current *call, id, name string) {
	if id == "" {
		id = current.id
	}
	for n := c.before + current.index + 1; id == "" || c.ids[id]; n++ {
		id = fmt.Sprintf("call_%d", n)
	}
	c.ids[id] = true
	current.id, current.name, current.started = id, name, true
}

// argue appends arguments, or holds them until the call has its name.
func (c *call) argue(out []llm.Chunk, arguments string) []llm.Chunk {
	arguments = c.held + arguments
	c.held = ""
	if !c.started {
		c.held = arguments
		return out
	}
	if text := c.text.Mend(arguments); text != "" {
		out = append(out, llm.ToolCallDelta{Index: c.index, Arguments: text})
	}
	return out
}
