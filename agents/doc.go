// Package agents defines agents: a model, its instructions, the tools that it may use, and its
// limits.
//
//	name: support
//	description: Answers customers of a bookshop.
//	model: openai/gpt-5-mini        # provider/model
//	instructions: |
//	  You help customers of a bookshop.
//	tools: [get_order, "github_*"]  # names, or patterns with *
//	state: {visible: true, predict: [{tool: write_note, argument: text, key: note}]}
//	limits: {turns: 30, tokens: 400000, duration: 2h, parallelTools: 8}
//
// Instead of a model, an agent may have steps: see [Step]. Package expression evaluates their
// expressions, and package pipeline finds the next step.
//
// In Go, [New] makes an agent from steps that [Ask], [Call], [Approve], [Map] and others return.
// Their outputs are references with a Go type, [Ref], so that the compiler checks their use.
//
// A definition is a document of a file, or a [Definition] made in Go:
//
//	file ──Parse──► Definition ──Encode──► canonical JSON ──► bucket ──Decode──► Definition
//	                     └──Revision──► its address
//
// Rules:
//   - Parsing is strict. An unknown key, a value of another type, and a limit of zero are errors.
//     All errors of a file are reported together, each with its line.
//   - The revision is an address of the content. Comments, the order of keys, and explicit defaults
//     do not change it. Everything that can affect a run does.
//   - A file may have several documents. Besides agents, their kinds are HTTP tools, MCP servers,
//     and scripts that stand for a model: see [Folder]. This package checks only their form.
//   - This package does not check that the model and the tools exist, because the workers that have
//     them come and go. [Folder.CheckNames] compares names with known ones.
//
// agent.schema.json, tool.schema.json, mcp.schema.json and script.schema.json describe the formats
// to editors. assistant.yaml, demo.yaml and think.yaml are the agents that come with the program.
package agents
