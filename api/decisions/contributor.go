package decisions

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// Approvals depend on everybody whose content the model has received (snapshot.Contributor). This
// file finds out whose content an input is, and who may not decide because of it.

// RequesterOf returns the requester and the sender of an input; nil = an anonymous caller. The
// requester is the caller. But an input that only decides about interrupts continues the thread's
// last run, and keeps its requester: otherwise an approver would become the requester. If such an
// input also changes what models receive, sender is the caller; otherwise it is nil. The error is
// 409 too_many_contributors if the thread has no room for content of the caller.
func (s *Service) RequesterOf(ctx context.Context, in *agui.RunAgentInput, snap *snapshot.Snapshot, onlyDecides bool) (requester, sender *auth.Principal, err error) {
	caller := request.Requester(ctx)
	if !onlyDecides || snap.Input == 0 {
		return caller, nil, commands.CheckContributor(ctx, snap)
	}
	last, err := s.finder.Log.Input(ctx, snap.Input)
	if err != nil {
		return nil, nil, err
	}
	if !addsContent(in, last, snap) {
		return last.Requester, nil, nil
	}
	return last.Requester, caller, commands.CheckContributor(ctx, snap)
}

// addsContent reports whether an input without messages changes what models or conditions read: the
// state, or the context, the tools or the forwarded properties of the last input.
func addsContent(in *agui.RunAgentInput, last *stream.Input, snap *snapshot.Snapshot) bool {
	changesState := !SameJSON(snap.StateWith(&stream.Input{Input: *in}), snap.State)
	return changesState || !slices.EqualFunc(in.Context, last.Input.Context, sameContext) ||
		!slices.EqualFunc(in.Tools, last.Input.Tools, sameTool) ||
		!SameJSON(withoutOptions(in.ForwardedProps), withoutOptions(last.Input.ForwardedProps))
}

// sameContext reports whether two facts of the context are the same to a model.
func sameContext(a, b agui.Context) bool {
	return a.Description == b.Description && a.Value == b.Value
}

// sameTool reports whether two client tools are the same to a model.
func sameTool(a, b agui.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && SameJSON(a.Parameters, b.Parameters)
}

// withoutOptions returns forwarded properties without the member perdure, whose options are for the
// API.
func withoutOptions(props json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(props, &members) != nil {
		return props
	}
	delete(members, "perdure")
	if len(members) == 0 {
		return nil
	}
	encoded, err := json.Marshal(members)
	if err != nil {
		return props // unreachable: all members were decoded from JSON
	}
	return encoded
}

// SameJSON reports whether two JSON texts have equal values, whatever their white space and the
// order of their members.
func SameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var first, second any
	return json.Unmarshal(a, &first) == nil && json.Unmarshal(b, &second) == nil && reflect.DeepEqual(first, second)
}

// isAuthor reports whether a caller may have written what models of the thread have received, other
// than by decisions about calls. Two anonymous callers of a tenant may be the same person, so they
// count as one.
func isAuthor(snap *snapshot.Snapshot, caller auth.Principal) bool {
	return slices.ContainsFunc(snap.Authors(), func(p *auth.Principal) bool {
		author := auth.Principal{Tenant: auth.TenantDefault}
		if p != nil {
			author = *p
		}
		return author.Tenant == caller.Tenant && author.Subject == caller.Subject
	})
}

// callersOf returns the contributors of a thread, as conditions see them.
func callersOf(snap *snapshot.Snapshot) []*agents.Caller {
	var callers []*agents.Caller
	for _, c := range snap.Contributors {
		callers = append(callers, (*agents.Caller)(c.Principal))
	}
	return callers
}
