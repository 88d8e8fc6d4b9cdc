// Package scripted implements an [llm.Model] that plays scripts. It needs no network and no API
// key, and serves demos, examples and tests.
//
//	model := scripted.New(scripted.Demo(scripted.DefaultPace))
//	model.Stream(ctx, &llm.Request{Model: "scripted/demo", …})
//
// A script is a function from a request to chunks. The model adds the pause between chunks,
// cancellation, token usage, and an error for a script that ends without a Finish:
//
//	scripted.Script{Name: "hello", Play: func(call int, req *llm.Request) iter.Seq2[llm.Chunk, error] {
//		return scripted.Say("Hello!")
//	}}
//
// A [Dialog] is a script defined by data: patterns for user messages, and the answers to them.
//
// Scripts are deterministic: they use no random numbers and no clock, except for the timer between
// two chunks.
package scripted
