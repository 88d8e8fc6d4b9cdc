package policy

import (
	"testing"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// TestEntitiesFitSchema: callers and resources have the attributes of the schema, so policies that
// fit the schema can be evaluated.
func TestEntitiesFitSchema(t *testing.T) {
	t.Parallel()
	s, err := newSchema()
	if err != nil {
		t.Fatal(err)
	}
	ann, shared := "ann", stream.Access{}
	for _, level := range stream.AccessLevels {
		shared.Shares = append(shared.Shares, stream.Share{Role: "finance", Access: level})
	}
	owned := shared
	owned.Owner = &ann
	root := DefaultRoles.caller(auth.Principal{Tenant: "acme", Subject: "root", Roles: []string{DefaultRoles.PlatformAdmin}})
	if err := s.validator.Entity(root); err != nil {
		t.Errorf("caller: %v", err)
	}
	for name, r := range map[string]Resource{
		"tenant": Tenant("acme"), "platform": Platform(), "subject": Subject("acme", ann), "schedule": Schedule("acme", ann),
		"agent": Agent("acme", "pay"), "tool": Tool("refund"), "model": Model("openai/gpt"), "program": Program("billing"), "host": Host("agents.example.com"),
		"thread": Thread("acme", &owned), "thread without an owner": Thread("acme", &shared),
	} {
		if err := s.validator.Entity(r.entity); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
