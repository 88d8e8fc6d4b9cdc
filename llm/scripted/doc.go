// Package scripted is a model that needs no network and no key: it plays
// scripts. It serves demos, examples and tests.
//
//	model := scripted.New(scripted.Demo(scripted.DefaultPace))
//	model.Stream(ctx, &llm.Request{Model: "scripted/demo", …})
//
// A script is a function from a request to chunks; the model adds the pacing,
// the cancel, the usage, and an error if the script ends without a Finish:
//
//	scripted.Script{Name: "hello", Play: func(call int, req *llm.Request) iter.Seq2[llm.Chunk, error] {
//		return scripted.Say("Hello!")
//	}}
//
// A [Dialog] is a script that is data: what the user may say, and what is answered.
//
// Scripts are deterministic. Nothing here is random, and no clock is read
// but the timer between two chunks.
package scripted
