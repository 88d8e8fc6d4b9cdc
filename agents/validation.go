package agents

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"
)

const (
	maxDescription   = 4 << 10
	maxInstructions  = 256 << 10
	maxTools         = 256
	maxParallelTools = 512
)

var (
	nameRule  = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	modelRule = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}/[!-~]{1,256}$`)
	toolName  = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	toolRule  = regexp.MustCompile(`^[a-zA-Z0-9_*:./-]{1,128}$`)
)

// Validate checks a definition that was made in Go by the rules of files. Limits of zero are valid:
// they have their defaults. The error is a *DefinitionError, or several joined.
func (d *Definition) Validate() error {
	return joined(d.Name, d.mistakes())
}

// joined returns mistakes as errors. The errors have the agent's name unless it is invalid.
func joined(agent string, found []mistake) error {
	if !nameRule.MatchString(agent) {
		agent = ""
	}
	var errs []error
	for _, m := range found {
		errs = append(errs, &DefinitionError{Agent: agent, Key: m.key, Reason: m.reason})
	}
	return errors.Join(errs...)
}

// mistakes returns all mistakes of the definition.
func (d *Definition) mistakes() []mistake {
	var found []mistake
	if !nameRule.MatchString(d.Name) {
		found = append(found, newMistake("name", "%.80q must be 1 to 64 of a-z, 0-9, _ and -, and begin with a letter or digit", d.Name))
	}
	switch hasSteps := len(d.Steps) > 0 || d.Workflow != ""; {
	case d.Model != "" || len(d.Fallback.Models) > 0 || !hasSteps && d.Remote == nil:
		found = append(found, modelMistakes(d.Model, d.Fallback, hasSteps)...)
	default:
		found = append(found, d.Fallback.codeMistakes()...)
	}
	if d.TitleModel != "" && !modelRule.MatchString(d.TitleModel) {
		found = append(found, newMistake("titleModel", "%.80q must be provider/model, such as openai/gpt-5-mini", d.TitleModel))
	}
	found = append(found, textMistakes("description", d.Description, maxDescription)...)
	found = append(found, d.Reasoning.mistakes()...)
	found = append(found, textMistakes("instructions", d.Instructions, maxInstructions)...)
	found = append(found, d.toolMistakes()...)
	found = append(found, d.subagentMistakes()...)
	found = append(found, d.handoffMistakes()...)
	found = append(found, d.stepMistakes()...)
	switch {
	case d.Workflow != "" && !nameRule.MatchString(d.Workflow):
		found = append(found, newMistake("workflow", "%.80q must be 1 to 64 of a-z, 0-9, _ and -, and begin with a letter or digit", d.Workflow))
	case d.Workflow != "" && len(d.Steps) > 0:
		found = append(found, newMistake("workflow", "must not be combined with steps"))
	case d.Instructions != "" && len(d.Steps) > 0:
		found = append(found, newMistake("instructions", "must not be combined with steps: each agent step has its own, as in agent: {instructions: …}"))
	}
	found = append(found, d.remoteMistakes()...)
	found = append(found, d.triggerMistakes()...)
	found = append(found, d.approvalMistakes()...)
	found = append(found, d.outputMistakes()...)
	found = append(found, d.State.mistakes(append(d.InlineTools(), d.Tools...))...)
	found = append(found, d.Context.mistakes()...)
	found = append(found, d.openPolicyMistakes()...)
	found = append(found, d.Input.mistakes()...)
	return append(found, d.Limits.mistakes()...)
}

// textMistakes checks a text: its length, and that it is valid UTF-8.
func textMistakes(key, text string, limit int) []mistake {
	switch {
	case len(text) > limit:
		return []mistake{newMistake(key, "must be at most %d bytes, not %d", limit, len(text))}
	case !utf8.ValidString(text):
		// The JSON encoder replaces invalid bytes, so that different texts would have one revision.
		return []mistake{newMistake(key, "must be valid UTF-8")}
	}
	return nil
}

// toolMistakes returns the mistakes in the list of tools.
func (d *Definition) toolMistakes() []mistake {
	if len(d.Tools) > maxTools {
		return []mistake{newMistake("tools", "must be at most %d, not %d", maxTools, len(d.Tools))}
	}
	var found []mistake
	for i, tool := range d.Tools {
		switch {
		case !toolRule.MatchString(tool):
			found = append(found, mistake{"tools", i, fmt.Sprintf("tools: %.80q must be a tool's name, or a pattern with *", tool)})
		case slices.Contains(d.Tools[:i], tool):
			found = append(found, mistake{"tools", i, fmt.Sprintf("tools: %q appears twice", tool)})
		}
	}
	return found
}
