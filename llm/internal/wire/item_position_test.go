package wire

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/llm"
)

func TestWeave(t *testing.T) {
	t.Parallel()
	at := func(text, calls int) llm.Reasoning {
		data, _ := json.Marshal(ItemPosition{Text: text, Calls: calls})
		return llm.Reasoning{Provider: "p", Data: data}
	}
	message := func(blocks ...llm.Reasoning) llm.Message {
		return llm.Message{
			Parts:     []llm.Part{llm.Text{Text: "one "}, llm.Text{Text: "zwö"}},
			ToolCalls: []llm.ToolCall{{ID: "a"}, {ID: "b"}},
			Reasoning: blocks,
		}
	}
	for name, test := range map[string]struct {
		message llm.Message
		want    string
	}{
		"nothing":                     {llm.Message{}, ""},
		"no reasoning":                {message(), "[one zwö] (a) (b) "},
		"at the beginning":            {message(at(0, 0), at(0, 0)), "* * [one zwö] (a) (b) "},
		"in the text":                 {message(at(0, 0), at(4, 0)), "* [one ] * [zwö] (a) (b) "},
		"between calls":               {message(at(8, 1)), "[one zwö] (a) * (b) "},
		"at the end":                  {message(at(8, 2)), "[one zwö] (a) (b) * "},
		"beyond the end":              {message(at(99, 99)), "[one zwö] (a) (b) * "},
		"in a character":              {message(at(7, 0)), "[one zwö] * (a) (b) "},
		"before the beginning":        {message(at(-1, -1)), "* [one zwö] (a) (b) "},
		"backward":                    {message(at(4, 0), at(0, 0)), "[one ] * * [zwö] (a) (b) "},
		"a block of another provider": {message(llm.Reasoning{Provider: "q", Data: json.RawMessage(`{}`)}), "[one zwö] (a) (b) "},
		"a block that cannot be read": {message(llm.Reasoning{Provider: "p", Data: json.RawMessage(`1`)}), "[one zwö] (a) (b) "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			elements := Weave(test.message, func(block llm.Reasoning) (ItemPosition, bool) {
				var at ItemPosition
				ok := block.Provider == "p" && json.Unmarshal(block.Data, &at) == nil
				return at, ok
			})
			got, all := "", 0
			for element := range elements {
				got += show(element)
				all++
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("woven (-want +got):\n%s", diff)
			}
			for stop := range all { // an early exit ends the iteration
				n := 0
				for range elements {
					if n++; n > stop {
						break
					}
				}
			}
		})
	}
}

// show returns an element as text.
func show(e Element) string {
	switch {
	case e.Call != nil:
		return fmt.Sprintf("(%s) ", e.Call.ID)
	case e.Block != nil:
		return "* "
	default:
		return fmt.Sprintf("[%s] ", e.Text)
	}
}
