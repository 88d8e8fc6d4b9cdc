package main

import (
	"time"

	"github.com/perdure/perdure/agents"
)

// triage hands the thread over to the agent for the customer's concern: billing or technical.
func triage() (*agents.Definition, error) {
	return agents.New(agents.Definition{
		Name: "triage", Description: "Finds out what a customer wants, and hands over to whom it concerns.", Model: "scripted/triage",
		Instructions: "You are the first whom customers of a shop talk to. Hand over to billing whatever is about a bill, and to technical what is\n" +
			"broken. Answer anything else yourself, in one friendly sentence.\n",
		Tools: []string{"handoff:billing", "handoff:technical"},
	})
}

// billing explains bills. It may hand over to refunds, which a person must approve.
func billing() (*agents.Definition, error) {
	return agents.New(agents.Definition{
		Name: "billing", Description: "Explains bills.", Model: "scripted/billing",
		Instructions: "You explain bills. If one is wrong, calculate a tenth of it. Up to 5 you promise as a token of goodwill, for more hand over\n" +
			"to refunds. What is broken is for technical.\n",
		Tools:     []string{"calculate", "handoff:refunds", "handoff:technical"},
		Approvals: []agents.Approval{{Tools: []string{"transfer_to_refunds"}, Expires: 24 * time.Hour}},
	})
}

// refunds confirms refunds, and may hand the thread back to triage.
func refunds() (*agents.Definition, error) {
	return agents.New(agents.Definition{
		Name: "refunds", Description: "Pays money back, when a person has let a customer through to it.", Model: "scripted/refunds",
		Instructions: "You tell customers that a tenth of their bill is on its way to them. Anything else is for triage.",
		Tools:        []string{"calculate", "handoff:triage"},
	})
}

// technical helps with faults.
func technical() (*agents.Definition, error) {
	return agents.New(agents.Definition{
		Name: "technical", Description: "Helps with what is broken.", Model: "scripted/technical",
		Instructions: "You help with what is broken. Hand over to billing whatever is about a bill.",
		Tools:        []string{"handoff:billing"},
	})
}
