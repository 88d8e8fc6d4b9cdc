package main

import "time"

// pace is how a model speaks. It is the model's name, and the agent's, so that one server speaks
// all.
type pace string

const (
	instant pace = "instant" // all tokens at once
	paced   pace = "paced"   // one token per 20 ms
	slow    pace = "slow"    // five tokens a second, for a while
	brief   pace = "brief"   // … for less
	wide    pace = "wide"    // five large tokens a second: a client that stops reading is felt soon
	wider   pace = "wider"   // … for less, and larger
	handing pace = "handing" // all tokens at once, then a call of the agent that is instant; behind its result the same
	asking  pace = "asking"  // some tokens, then a tool call that people decide about; behind its result all tokens at once
)

// speech is what a pace means.
type speech struct {
	tokens   int
	interval time.Duration // between two of them; 0 = none
	padding  int           // bytes that make a token larger
	call     *call         // what it ends with, unless a call has been answered
	agent    string        // what else its agent is defined by
}

const (
	tokensPerRun  = 100
	tokenInterval = 20 * time.Millisecond
)

var speeches = map[pace]speech{
	instant: {tokens: tokensPerRun},
	paced:   {tokens: tokensPerRun, interval: tokenInterval},
	slow:    {tokens: 400, interval: 200 * time.Millisecond},
	brief:   {tokens: 75, interval: 200 * time.Millisecond},
	wide:    {tokens: 600, interval: 200 * time.Millisecond, padding: 4 << 10},
	wider:   {tokens: 300, interval: 200 * time.Millisecond, padding: 16 << 10},
	handing: {tokens: tokensPerRun, call: &call{string(instant), `{"task":"Count."}`}, agent: "tools: [\"agent:instant\"]\n"},
	asking:  {tokens: 10, call: &call{"calculate", `{"expression":"6*7"}`}, agent: "tools: [calculate]\napprovals: [{tools: [calculate]}]\n"},
}

// call is a tool call of a model.
type call struct{ tool, arguments string }
