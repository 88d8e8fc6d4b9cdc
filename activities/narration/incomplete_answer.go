package narration

import (
	"encoding/json"

	"github.com/perdure/perdure/agui"
)

// customAnswerIncomplete is the name of the custom event about an answer that was cut, refused or
// withheld.
const customAnswerIncomplete = "perdure.answerIncomplete"

// incompleteAnswer returns the event about an incomplete answer; none if the answer is complete.
func (n *Narrator) incompleteAnswer() ([]agui.Event, error) {
	if !n.Answer.IsIncomplete() {
		return nil, nil
	}
	value, err := json.Marshal(struct {
		MessageID string `json:"messageId,omitempty"`
		Reason    string `json:"reason"`
	}{n.Answer.MessageID, n.Answer.Finish})
	if err != nil { // cannot be: all of it is text
		return nil, err
	}
	return []agui.Event{&agui.Custom{Name: customAnswerIncomplete, Value: value}}, nil
}
