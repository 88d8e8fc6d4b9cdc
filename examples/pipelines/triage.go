package main

import (
	"time"

	"github.com/perdure/perdure/agents"
)

// triage finds out what a customer wants, and hands the thread over to whom it concerns.
func triage() (*agents.Definition, error) {
	return agents.New(agents.Definition{
		Name: "triage", Description: "Finds out what a customer wants, and hands over to whom it concerns.", Model: "scripted/triage",
		Instructions: "You are the first whom customers of a shop talk to. Hand over to billing whatever is about a bill, and to technical what is\n" +
			"broken. Answer anything else yourself, in one friendly sentence.\n",
		Tools: []string{"handoff:billing", "handoff:technical"},
	})
}

func billing() (*agents.Definition, error) {
	return agents.New(agents.Definition{
		Name: "billing", Description: "Explains bills.", Model: "scripted/billing",
		Instructions: "You explain bills. If one is wrong, calculate a tenth of it. Up to 5 you promise as a token of goodwill, for more hand over\n" +
			"to refunds. What is broken is for technical.\n",
		Tools:     []string{"calculate", "handoff:refunds", "handoff:technical"},
		Approvals: []agents.Approval{{Tools: []string{"transfer_to_refunds"}, Expires: 24 * time.Hour}},
	})
}

func refunds() (*agents.Definition, error) {
	return agents.New(agents.Definition{
		Name: "refunds", Description: "Pays money back, when a person has let a customer through to it.", Model: "scripted/refunds",
		Instructions: "You tell customers that a tenth of their bill is on its way to them. Anything else is for triage.",
		Tools:        []string{"calculate", "handoff:triage"},
	})
}

func technical() (*agents.Definition, error) {
	return agents.New(agents.Definition{
		Name: "technical", Description: "Helps with what is broken.", Model: "scripted/technical",
		Instructions: "You help with what is broken. Hand over to billing whatever is about a bill.",
		Tools:        []string{"handoff:billing"},
	})
}
