package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// staff are agents that work long enough for a person to act meanwhile.
const staff = `
name: stepper
description: Counts, and calculates at the end.
model: scripted/stepper
tools: [calculate]
---
name: echo
model: scripted/echo
---
name: lead
model: scripted/lead
tools: ["agent:middle"]
---
name: middle
model: scripted/middle
tools: ["agent:stepper"]
---
name: spread
model: scripted/echo
steps:
  - {name: each, map: {items: '["Hello Ada", "Hello Bo"]', as: item, steps: [{name: greet, agent: {}, input: "${item}"}]}}
  - {name: result, agent: {}, input: Report}
---
name: door
model: scripted/door
tools: ["handoff:echo"]
---
kind: script
name: door
turns: [{steps: [{calls: [{tool: transfer_to_echo}]}]}]
---
kind: script
name: stepper
pace: 20ms
turns:
  - {when: Count, steps: [{say: "%s", calls: [{tool: calculate, arguments: {expression: 1+1}}]}, {say: "The end is {calculate}."}]}
  - {steps: [{say: I am short.}]}
---
kind: script
name: echo
turns: [{when: 'Hello (?P<name>\w+)', steps: [{say: "Hi {name}."}]}, {when: Report, steps: [{say: '{"greeted": true, "of": {"by": "echo"}}'}]}, {steps: [{say: I see it.}]}]
---
kind: script
name: lead
turns: [{steps: [{say: I ask the middle., calls: [{tool: middle, arguments: {task: Work}}]}, {say: All is done.}]}]
---
kind: script
name: middle
turns: [{steps: [{say: Another agent counts., calls: [{tool: stepper, arguments: {task: Count}}]}, {say: The middle is done.}]}]
`

// lastNumber is the last number that the agent stepper counts to.
const lastNumber = "n299"

// TestConversation: one process serves conversations with the agents of staff, concurrently.
func TestConversation(t *testing.T) {
	t.Parallel()
	var numbers strings.Builder
	for i := range 300 {
		fmt.Fprintf(&numbers, "n%d ", i)
	}
	p := kit.SetupWith(t, fmt.Sprintf(staff, numbers.String()))
	for name, test := range map[string]func(*testing.T, *kit.Perdure){
		"busy": testBusy, "attachments": testAttachments, "large attachment": testLargeAttachment, "stopped attachment": testStoppedAttachment, "previews": testPreviews, "subagents": testSubagents, "offline": testOffline, "forks": testForks, "branches": testBranches, "handoffs": testHandoffs,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
}

// threadOf returns the ID of the thread whose conversation a tab shows.
func threadOf(tab *kit.Tab) (id string) {
	tab.Evaluate(`decodeURIComponent(location.pathname.split("/threads/")[1])`, &id)
	return id
}
