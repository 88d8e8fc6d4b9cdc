package wire

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/llm"
)

// Calls assigns an index, an ID and a name to each tool call of one completion, and repairs what
// API servers get wrong: missing IDs, repeated IDs, one index for all parallel calls, arguments
// before the name. One goroutine uses it.
//
// Two numberings exist. A slot is the number that the server uses for a call. An index is the
// number that the chunks carry. They are equal unless a server uses one slot for several calls.
type Calls struct {
	max    int             // maximum number of calls
	before int             // calls in the conversation so far, for generated IDs
	ids    map[string]bool // every ID in use, in the conversation and in this completion
	slots  map[int64]*call // by the server's slot: the call that the slot refers to at present
	calls  map[int]*call   // by index
}

// call is one tool call of the completion.
type call struct {
	index    int
	id, name string // name is "" until started; id can arrive earlier
	started  bool   // a ToolCallStart has been emitted
	held     string // arguments that arrived before the name
	text     Mender // joins characters that the server split between fragments
}

// NewCalls returns an empty Calls for a completion of req with at most max calls. IDs of calls in
// the conversation count as used.
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

// Len returns the number of started calls.
func (c *Calls) Len() int {
	n := 0
	for _, call := range c.calls {
		if call.started {
			n++
		}
	}
	return n
}

// Add processes a fragment of the call with the server's number slot. It appends the resulting
// chunks to out: none while the name is unknown. Any of id, name and arguments may be empty. The
// error reports an invalid slot or too many calls.
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

// Finish appends the chunks that complete the calls. If whole is set, it returns an error for a
// call that never got a name. whole is false for a truncated completion, in which the last call may
// be incomplete.
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

// at returns the call that slot refers to, and creates it if necessary. Some servers use the same
// slot for all parallel calls. Therefore a new ID together with a name begins a new call. A new ID
// without a name does not: other servers generate an ID for each fragment.
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

// free returns want, or the lowest index without a call if want is in use.
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

// name starts the call. It generates an ID if the server's is missing or in use, because results
// are matched to calls only by ID.
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

// argue appends the chunk for a fragment of arguments, or holds the fragment until the call has its
// name.
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
