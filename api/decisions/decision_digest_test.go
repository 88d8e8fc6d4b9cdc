package decisions

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// callerContext returns a context with an authenticated caller.
func callerContext(t *testing.T, subject string, roles ...string) context.Context {
	t.Helper()
	return auth.With(t.Context(), auth.Principal{Tenant: "shop", Subject: subject, Roles: roles})
}

// TestDecisionDigest: a decision has the same digest in every channel and with any roles
// of its subject. Decisions of different subjects have different digests.
func TestDecisionDigest(t *testing.T) {
	t.Parallel()
	digest := func(ctx context.Context, kind string) [32]byte {
		t.Helper()
		d, err := digestOf(ctx, &stream.Decision{CallID: "c", Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	ada := digest(callerContext(t, "ada"), "approve")
	if digest(request.WithChannel(callerContext(t, "ada", "finance"), request.ChannelLink), "approve") != ada {
		t.Error("digest differs by link and with a role, want the same")
	}
	for name, other := range map[string][32]byte{
		"another person's": digest(callerContext(t, "bob"), "approve"), "another decision": digest(callerContext(t, "ada"), "reject"), "anonymous": digest(t.Context(), "approve"),
		"another tenant's": digest(auth.With(t.Context(), auth.Principal{Tenant: "other", Subject: "ada"}), "approve"),
	} {
		if other == ada {
			t.Errorf("%s: got the digest of ada's decision, want another", name)
		}
	}
}

// TestEqualAnswersHaveOneDigest: approvers whose clients write the members of an answer in another order
// vote for the same answer.
func TestEqualAnswersHaveOneDigest(t *testing.T) {
	t.Parallel()
	digest := func(content string) string { return argsDigest(&stream.Decision{Content: json.RawMessage(content)}) }
	first := digest(`{"pay":true,"by":"card"}`)
	if digest(`{"by":"card","pay":true}`) != first {
		t.Error("an equal answer has another digest")
	}
	for _, other := range []string{`{"by":"card","pay":false}`, `{"by":"card","pay":true,"pay":false}`, ``} {
		if digest(other) == first {
			t.Errorf("%s has the digest of another answer", other)
		}
	}
}
