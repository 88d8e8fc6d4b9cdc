package agui

import (
	"encoding/json"
	"slices"
)

// replaceState applies STATE_SNAPSHOT.
func (r *Reducer) replaceState(e *StateSnapshot) {
	r.state = e.Snapshot
	if r.state == nil {
		r.state = json.RawMessage("null")
	}
}

// patchState applies STATE_DELTA.
func (r *Reducer) patchState(e *StateDelta) error {
	next, ok, err := r.patch(e.EventType(), "/delta", r.state, e.Delta)
	if ok {
		r.state = next
	}
	return err
}

// patch applies a patch to doc. It omits operations of unknown kinds, with a warning. If the
// remaining patch does not apply, it returns false, with a warning. The error is a *DecodeError for
// a malformed patch; at is the member of the event that contains it.
func (r *Reducer) patch(t EventType, at string, doc, patch json.RawMessage) (json.RawMessage, bool, error) {
	if len(patch) == 0 {
		return doc, true, nil
	}
	if err := validJSON(patch); err != nil {
		return nil, false, &DecodeError{Pointer: at, Detail: err.Error()}
	}
	if bad := checkPatch(trimmed(patch)); bad != nil {
		return nil, false, &DecodeError{Pointer: at + bad.Pointer, Detail: bad.Detail}
	}
	known, dropped := knownOps(trimmed(patch))
	for _, i := range dropped {
		r.warn(t, at, "operation %d is unrecognized and was left out", i)
	}
	next, err := applyPatch(doc, known)
	if err != nil {
		r.warn(t, at, "patch does not apply: %v", err)
		return nil, false, nil
	}
	return next, true, nil
}

// setActivity applies ACTIVITY_SNAPSHOT. It replaces an existing message at its position.
func (r *Reducer) setActivity(e *ActivitySnapshot) {
	content := e.Content
	if content == nil {
		content = json.RawMessage("{}")
	}
	fresh := Message{ID: e.MessageID, Role: RoleActivity, ActivityType: e.ActivityType, Content: ObjectContent(content), SubagentRunID: e.SubagentRunID}
	existing := r.byID[e.MessageID]
	replace := e.Replace == nil || *e.Replace
	switch {
	case existing == nil:
		existing = &fresh
		r.add(existing)
	case existing.Role == RoleActivity && replace:
		fresh.Metadata, fresh.Unknown = existing.Metadata, existing.Unknown
		*existing = fresh
	// A message of another role has the ID: the activity replaces it, as in the reference client.
	case replace:
		*existing = fresh
		r.reindex()
	case existing.Role != RoleActivity:
		return
	}
	mergeMetadata(&existing.Metadata, e.Metadata)
}

// patchActivity applies ACTIVITY_DELTA.
func (r *Reducer) patchActivity(e *ActivityDelta) error {
	m := r.byID[e.MessageID]
	if m == nil || m.Role != RoleActivity {
		r.warn(e.EventType(), "/messageId", "no activity message %s", e.MessageID)
		return nil
	}
	mergeMetadata(&m.Metadata, e.Metadata)
	next, ok, err := r.patch(e.EventType(), "/patch", m.Content.Object(), e.Patch)
	switch {
	case !ok:
	case next[0] != '{':
		r.warn(e.EventType(), "/patch", "patch makes the content %s, which must stay an object", describe(next))
	default:
		m.Content, m.ActivityType = ObjectContent(next), e.ActivityType
	}
	return err
}

// restate applies MESSAGES_SNAPSHOT. Known messages are replaced at their position, new ones are
// appended, and missing ones are removed. A missing activity or reasoning message remains, unless
// the snapshot contains messages of that kind or declares that it is complete for it.
func (r *Reducer) restate(e *MessagesSnapshot) {
	stated := make(map[string]*Message, len(e.Messages))
	for _, m := range e.Messages {
		stated[m.ID] = m.clone()
	}
	keeps := keptBySnapshot(e)
	var next []*Message
	placed := make(map[string]bool, len(stated))
	for _, m := range r.messages {
		if s := stated[m.ID]; s != nil {
			next = append(next, s)
			placed[m.ID] = true
		} else if keeps(m) {
			next = append(next, m)
		}
	}
	for _, m := range e.Messages {
		if !placed[m.ID] {
			next = append(next, stated[m.ID])
			placed[m.ID] = true
		}
	}
	r.messages = next
	r.reindex()
}

// keptBySnapshot returns a function that reports whether a message that the snapshot lacks remains.
func keptBySnapshot(e *MessagesSnapshot) func(*Message) bool {
	hasActivity := slices.ContainsFunc(e.Messages, func(m Message) bool { return m.Role == RoleActivity })
	hasReasoning := slices.ContainsFunc(e.Messages, func(m Message) bool { return m.Role == RoleReasoning })
	types, stated := authoritativeActivityTypes(e.Metadata)
	return func(m *Message) bool {
		switch {
		case m.Role == RoleReasoning:
			return !hasReasoning
		case m.Role != RoleActivity:
			return false
		case stated:
			return types != nil && !slices.Contains(types, m.ActivityType)
		default:
			return !hasActivity
		}
	}
}

// SnapshotActivities returns the metadata of a MESSAGES_SNAPSHOT that is complete for the
// activities of some types. The reference client removes activities of these types that the
// snapshot lacks, and keeps the others.
func SnapshotActivities(types []string) (Metadata, error) {
	raw, err := json.Marshal(map[string][]string{"authoritativeActivityTypes": types})
	if err != nil {
		return nil, err
	}
	return Metadata{"@ag-ui/client": raw}, nil
}

// authoritativeActivityTypes reads a convention of the reference client:
// metadata["@ag-ui/client"].authoritativeActivityTypes of a snapshot lists the activity types for
// which the snapshot is complete. null means all types (nil here), and an invalid value none.
// stated is false without such a list.
func authoritativeActivityTypes(m Metadata) (types []string, stated bool) {
	raw, ok := m["@ag-ui/client"]
	if !ok {
		return nil, false
	}
	var client map[string]json.RawMessage
	if json.Unmarshal(raw, &client) != nil || client == nil {
		return []string{}, true
	}
	list, ok := client["authoritativeActivityTypes"]
	if !ok {
		return nil, false
	}
	if json.Unmarshal(list, &types) != nil {
		return []string{}, true
	}
	return types, true
}
