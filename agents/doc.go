// Package agents says what an agent is: a model, what it is told, the tools it
// may use and how far it may go.
//
//	name: support
//	description: Answers customers of a bookshop.
//	model: openai/gpt-5-mini        # provider/model
//	instructions: |
//	  You help customers of a bookshop.
//	tools: [get_order, "github_*"]  # names, or * for any run of characters
//	state: {visible: true, predict: [{tool: write_note, argument: text, key: note}]}
//	limits: {turns: 30, tokens: 400000, duration: 2h, parallelTools: 8}
//
// Instead of a model it may have a tree of steps: [Step]. What it computes is in package expression, and what
// comes after what in package pipeline.
//
// In Go, [New] makes it of steps that [Ask], [Call], [Approve], [Map] and others make. Their outputs are references with a
// Go type, [Ref], and what is of the wrong kind is not compiled.
//
// A definition is a file with one such document, or a [Definition] made in Go:
//
//	file ──Parse──► Definition ──Encode──► canonical JSON ──► bucket ──Decode──► Definition
//	                     └──Revision──► its address
//
// The rules:
//
//   - Reading is strict. A key that is not known is an error and not a
//     surprise later; so is a value of another type, and a limit of zero. All
//     errors of a file are reported at once, each with its line.
//   - The revision is an address of the content. Comments, the order of keys
//     and defaults spelled out do not change it; anything that a run could
//     notice does.
//   - A file may have several documents. What else stands in them besides agents, by their kind, are
//     tools that are HTTP requests, MCP servers, and scripts that stand for a model: [Folder]. Only their
//     form is checked here.
//   - Whether the model and the tools exist is not asked here: the workers that
//     have them come and go.
//
// agent.schema.json, tool.schema.json, mcp.schema.json and script.schema.json describe the formats to
// editors. assistant.yaml, demo.yaml and think.yaml, beside it, are the agents that come with the program.
package agents
