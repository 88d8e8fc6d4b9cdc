package main

import "time"

// pace is the pace at which a model streams. It is the name of the model and of its agent, so that
// one server can serve all paces.
type pace string

const (
	instant pace = "instant" // all tokens at once
	paced   pace = "paced"   // one token per 20 ms
	lasting pace = "lasting" // like paced, for longer
	slow    pace = "slow"    // five tokens a second, for a while
	brief   pace = "brief"   // like slow, but shorter
	wide    pace = "wide"    // five large tokens a second: backpressure of a client that stops reading shows soon
	wider   pace = "wider"   // like wide, but shorter and larger
	handing pace = "handing" // all tokens at once, then a call of the agent instant; after its result the same
	long    pace = "long"    // one token, and a minute later another one
	usual   pace = "usual"   // half a second of silence, then one token per 20 ms
	asking  pace = "asking"  // some tokens, then a tool call that needs a decision; after its result all tokens at once
)

// speech is the definition of a pace.
type speech struct {
	tokens   int
	silence  time.Duration // before the first token
	interval time.Duration // between two tokens; 0 = none
	padding  int           // bytes that enlarge a token
	call     *call         // call at the end, unless a call has been answered
	agent    string        // further members of the agent's definition
}

const (
	tokensPerRun  = 100
	tokensLasting = 3 * tokensPerRun
	tokenInterval = 20 * time.Millisecond
)

var speeches = map[pace]speech{
	instant: {tokens: tokensPerRun},
	paced:   {tokens: tokensPerRun, interval: tokenInterval},
	lasting: {tokens: tokensLasting, interval: tokenInterval},
	slow:    {tokens: 400, interval: 200 * time.Millisecond},
	brief:   {tokens: 75, interval: 200 * time.Millisecond},
	wide:    {tokens: 600, interval: 200 * time.Millisecond, padding: 4 << 10},
	wider:   {tokens: 300, interval: 200 * time.Millisecond, padding: 16 << 10},
	handing: {tokens: tokensPerRun, call: &call{string(instant), `{"task":"Count."}`}, agent: "tools: [\"agent:instant\"]\n"},
	long:    {tokens: 2, interval: time.Minute},
	usual:   {tokens: 50, silence: 500 * time.Millisecond, interval: tokenInterval},
	asking:  {tokens: 10, call: &call{"calculate", `{"expression":"6*7"}`}, agent: "tools: [calculate]\napprovals: [{tools: [calculate]}]\n"},
}

// call is a tool call of a model.
type call struct{ tool, arguments string }
