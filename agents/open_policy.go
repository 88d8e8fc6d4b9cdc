package agents

import (
	"slices"
	"strings"
)

// Values of OnNewInput and OnMissingToolResult: what happens to an input that leaves interrupts of
// its thread open.
const (
	OpenReject  = "reject"  // the API refuses it
	OpenQueue   = "queue"   // it waits until no interrupt is open
	OpenAbandon = "abandon" // the open interrupts are abandoned
)

// HistoryAuto is the default of Definition.History.
const HistoryAuto = "auto"

var (
	histories      = []string{HistoryAuto, "append", "replace"}
	newInputs      = []string{OpenReject, OpenQueue}
	missingResults = []string{OpenAbandon, OpenReject, OpenQueue}
)

// MissingToolResult returns OnMissingToolResult or its default.
func (d *Definition) MissingToolResult() string {
	if d.OnMissingToolResult == "" {
		return OpenAbandon
	}
	return d.OnMissingToolResult
}

// withoutDefaults empties the fields that have their default: a definition has one canonical form.
func (d *Definition) withoutDefaults() {
	if d.OnNewInput == OpenReject {
		d.OnNewInput = ""
	}
	if d.History == HistoryAuto {
		d.History = ""
	}
	d.Input = d.Input.withoutDefaults()
	d.Remote = d.Remote.withoutDefaults()
	d.Triggers = slices.Clone(d.Triggers) // a copy of the definition shares them
	for i := range d.Triggers {
		if d.Triggers[i].OnBusy == busyValues[0] {
			d.Triggers[i].OnBusy = ""
		}
	}
	if d.Context.Policy == ContextTrim {
		d.Context.Policy = ""
	}
	if d.OnMissingToolResult == OpenAbandon {
		d.OnMissingToolResult = ""
	}
}

// openPolicyMistakes returns the mistakes in History, OnNewInput and OnMissingToolResult.
func (d *Definition) openPolicyMistakes() []mistake {
	var found []mistake
	if d.History != "" && !slices.Contains(histories, d.History) {
		found = append(found, newMistake("history", "must be one of %s, not %.80q", strings.Join(histories, ", "), d.History))
	}
	if d.OnNewInput != "" && !slices.Contains(newInputs, d.OnNewInput) {
		found = append(found, newMistake("onNewInput", "must be one of %s, not %.80q", strings.Join(newInputs, ", "), d.OnNewInput))
	}
	if d.OnMissingToolResult != "" && !slices.Contains(missingResults, d.OnMissingToolResult) {
		found = append(found, newMistake("onMissingToolResult", "must be one of %s, not %.80q", strings.Join(missingResults, ", "), d.OnMissingToolResult))
	}
	return found
}
