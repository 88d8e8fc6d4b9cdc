package decisions

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream/snapshot"
)

// TestRequesterOfInput: a caller that only decides does not become the requester of the run that
// continues. It becomes a contributor if the input changes what the model or a condition reads.
func TestRequesterOfInput(t *testing.T) {
	t.Parallel()
	f := setup(t, time.Now(), 0, agents.Approval{NotByRequester: true})
	ctx := auth.With(t.Context(), *principalOf("bob"))
	for name, tt := range map[string]struct {
		input       agui.RunAgentInput
		onlyDecides bool
		wantSender  bool
	}{
		"a message":                  {},
		"only a decision":            {onlyDecides: true},
		"the same state":             {onlyDecides: true, input: agui.RunAgentInput{State: json.RawMessage(`{ }`)}},
		"options of the API":         {onlyDecides: true, input: agui.RunAgentInput{ForwardedProps: json.RawMessage(`{"perdure":{"hold":true}}`)}},
		"another state":              {onlyDecides: true, wantSender: true, input: agui.RunAgentInput{State: json.RawMessage(`{"to":"bob"}`)}},
		"context":                    {onlyDecides: true, wantSender: true, input: agui.RunAgentInput{Context: []agui.Context{{Description: "d", Value: "pay bob"}}}},
		"a client tool":              {onlyDecides: true, wantSender: true, input: agui.RunAgentInput{Tools: []agui.Tool{{Name: "x", Description: "pay bob"}}}},
		"other forwarded properties": {onlyDecides: true, wantSender: true, input: agui.RunAgentInput{ForwardedProps: json.RawMessage(`{"to":"bob","perdure":{}}`)}},
	} {
		requester, sender, err := f.RequesterOf(ctx, &tt.input, f.thread, tt.onlyDecides)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := "ann"
		if !tt.onlyDecides {
			want = "bob"
		}
		if requester == nil || requester.Subject != want {
			t.Errorf("%s: requester = %+v, want %s", name, requester, want)
		}
		if hasSender := sender != nil && sender.Subject == "bob"; hasSender != tt.wantSender {
			t.Errorf("%s: sender = %+v, want bob: %v", name, sender, tt.wantSender)
		}
	}
}

// TestFullThreadTakesNoContributors: a thread with the maximum of contributors refuses input of a
// further caller, and takes that of a known one.
func TestFullThreadTakesNoContributors(t *testing.T) {
	t.Parallel()
	f := setup(t, time.Now(), 0, agents.Approval{})
	full := *f.thread
	for i := len(full.Contributors); i < snapshot.MaxContributors; i++ {
		full.Contributors = append(full.Contributors, snapshot.Contributor{Principal: principalOf(fmt.Sprint(i))})
	}
	for caller, wantRefused := range map[string]bool{"ann": false, "bob": true} {
		_, _, err := f.RequesterOf(auth.With(t.Context(), *principalOf(caller)), &agui.RunAgentInput{}, &full, false)
		if (err != nil) != wantRefused {
			t.Errorf("input of %s: %v, want refused: %v", caller, err, wantRefused)
		}
	}
}
