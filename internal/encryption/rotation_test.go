package encryption

import (
	"testing"

	"gocloud.dev/secrets/localsecrets"

	"github.com/perdure/perdure/stream/streamtest"
)

// TestRotationInReplicatedBucket: a rotation continues when another process writes the same key in a replicated
// bucket.
func TestRotationInReplicatedBucket(t *testing.T) {
	t.Parallel()
	k, err := Open(t.Context(), streamtest.Open(t), []OperatorKey{{ID: "a", Keeper: localsecrets.NewKeeper([32]byte{1})}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.tenantKey(t.Context(), "acme", true); err != nil {
		t.Fatal(err)
	}
	k.bucket = streamtest.Contended(k.bucket)
	if tenants, _, err := k.RotateTenants(t.Context()); tenants != 1 || err != nil {
		t.Errorf("rotation: got %d tenants and error %v, want 1", tenants, err)
	}
}
