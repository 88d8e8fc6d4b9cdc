package main

import "time"

// pace is how a model speaks. It is the model's name, and the agent's, so that one server speaks all.
type pace string

const (
	instant pace = "instant" // all tokens at once
	paced   pace = "paced"   // one token per 20 ms
	slow    pace = "slow"    // five tokens a second, for a while
	brief   pace = "brief"   // … for less
	wide    pace = "wide"    // five large tokens a second: a client that stops reading is felt soon
	wider   pace = "wider"   // … for less, and larger
	calling pace = "calling" // some tokens, then a tool call; behind its result all tokens at once
)

// speech is what a pace means.
type speech struct {
	tokens   int
	interval time.Duration // between two of them; 0 = none
	padding  int           // bytes that make a token larger
	calls    bool          // ends with a tool call, unless one has been answered
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
	calling: {tokens: 10, interval: 100 * time.Millisecond, calls: true},
}
