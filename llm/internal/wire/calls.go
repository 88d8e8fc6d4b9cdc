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
	max        int             // maximum number of calls
	priorCalls int             // calls in the conversation so far, for generated IDs
	ids        map[string]bool // every ID in use, in the conversation and in this completion
	slots      map[int64]*call // by the server's slot: the call that the slot refers to at present
	calls      map[int]*call   // by index
}

// call is one tool call of the completion.
type call struct {
	index            int
	id, name         string // name is "" until started; id can arrive earlier
	isStarted        bool   // a ToolCallStart has been emitted
	pendingArguments string // arguments that arrived before the name
	text             Mender // joins characters that the server split between fragments
}

// NewCalls returns an empty Calls for a completion of req with at most max calls. IDs of calls in
// the conversation count as used.
func NewCalls(req *llm.Request, max int) *Calls {
	c := &Calls{max: max, ids: map[string]bool{}, slots: map[int64]*call{}, calls: map[int]*call{}}
	for _, message := range req.Messages {
		for _, toolCall := range message.ToolCalls {
			c.priorCalls++
			c.ids[toolCall.ID] = true
		}
	}
	return c
}

// Len returns the number of started calls.
func (c *Calls) Len() int {
	n := 0
	for _, call := range c.calls {
		if call.isStarted {
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
	current, err := c.callAt(slot, id, name)
	if err != nil {
		return out, err
	}
	if !current.isStarted && name != "" {
		c.start(current, id, name)
		out = append(out, llm.ToolCallStart{Index: current.index, ID: current.id, Name: current.name})
	} else if !current.isStarted && id != "" {
		current.id = id
	}
	return current.addArguments(out, arguments), nil
}

// Finish appends the chunks that complete the calls. If isComplete is set, it returns an error for
// a call that never got a name. isComplete is false for a truncated completion, in which the last
// call may be incomplete.
func (c *Calls) Finish(out []llm.Chunk, isComplete bool) ([]llm.Chunk, error) {
	for index := range c.max {
		current, ok := c.calls[index]
		switch {
		case !ok:
		case current.isStarted:
			if rest := current.text.Flush(); rest != "" {
				out = append(out, llm.ToolCallDelta{Index: index, Arguments: rest})
			}
		case isComplete:
			return out, &llm.Error{Code: llm.CodeMalformedResponse, Message: "a tool call has no name"}
		}
	}
	return out, nil
}

// callAt returns the call that slot refers to, and creates it if necessary. Some servers use the
// same slot for all parallel calls. Therefore a new ID together with a name begins a new call. A
// new ID without a name does not: other servers generate an ID for each fragment.
func (c *Calls) callAt(slot int64, id, name string) (*call, error) {
	current, ok := c.slots[slot]
	if ok && (!current.isStarted || id == "" || name == "" || id == current.id) {
		return current, nil
	}
	if slot < 0 {
		return nil, &llm.Error{Code: llm.CodeMalformedResponse, Message: "a tool call has a negative index"}
	}
	if slot >= int64(c.max) || len(c.calls) >= c.max {
		return nil, TooLarge("the response has more than %d tool calls", c.max)
	}
	current = &call{index: c.freeIndex(int(slot))}
	c.slots[slot], c.calls[current.index] = current, current
	return current, nil
}

// freeIndex returns want, or the lowest index without a call if want is in use.
func (c *Calls) freeIndex(want int) int {
	if c.calls[want] == nil {
		return want
	}
	index := 0
	for c.calls[index] != nil {
		index++
	}
	return index
}

// start starts the call. It generates an ID if the server's is missing or in use, because results
// are matched to calls only by ID.
func (c *Calls) start(current *call, id, name string) {
	if id == "" {
		id = current.id
	}
	for n := c.priorCalls + current.index + 1; id == "" || c.ids[id]; n++ {
		id = fmt.Sprintf("call_%d", n)
	}
	c.ids[id] = true
	current.id, current.name, current.isStarted = id, name, true
}

// addArguments appends the chunk for a fragment of arguments, or holds the fragment until the call
// has its name.
func (c *call) addArguments(out []llm.Chunk, arguments string) []llm.Chunk {
	arguments = c.pendingArguments + arguments
	c.pendingArguments = ""
	if !c.isStarted {
		c.pendingArguments = arguments
		return out
	}
	if text := c.text.Mend(arguments); text != "" {
		out = append(out, llm.ToolCallDelta{Index: c.index, Arguments: text})
	}
	return out
}
