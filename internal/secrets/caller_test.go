package secrets_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/secrets"
)

// tenantVault has secrets of tenants, and one of all.
func tenantVault(name string) string {
	return map[string]string{"KEY": "of-all", "KEY.acme": "of-acme", "KEY._41cme": "of-Acme", "KEY.lines": "a\nb"}[name]
}

func TestFillFor(t *testing.T) {
	t.Parallel()
	texts, _, err := secrets.ParseAll(map[string]string{
		"Key": "Bearer ${tenantSecret:KEY} ${secret:KEY}", "User": "{caller.subject} of {caller.tenant}, {or so} {caller}",
	})
	if err != nil {
		t.Fatal(err)
	}
	for tenant, key := range map[string]string{"acme": "of-acme", "Acme": "of-Acme"} {
		filled, redactor, err := texts.FillFor(secrets.Caller{Tenant: tenant, Subject: "ann@shop.example"}, tenantVault)
		want := map[string]string{"Key": "Bearer " + key + " of-all", "User": "ann@shop.example of " + tenant + ", {or so} {caller}"}
		if diff := cmp.Diff(want, filled); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tenant, err, diff)
		}
		if got := redactor.Text(key + " of-all ann@shop.example"); got != "[secret] [secret] ann@shop.example" {
			t.Errorf("redacted text = %q, want both secrets hidden", got)
		}
	}
}

// TestSecretOfTenantHasNoDefault: a tenant without a secret gets neither that of all nor that of
// another tenant.
func TestSecretOfTenantHasNoDefault(t *testing.T) {
	t.Parallel()
	texts, _, err := secrets.ParseAll(map[string]string{"Key": "${tenantSecret:KEY}"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []string{"globex", "ACME", "acme.", "acme/../acme", ""} {
		filled, _, err := texts.FillFor(secrets.Caller{Tenant: tenant}, tenantVault)
		if missing := (*secrets.MissingTenantError)(nil); err == nil || tenant != "" && !errors.As(err, &missing) {
			t.Errorf("tenant %q: got %q, %v, want an error", tenant, filled, err)
		}
	}
	if _, _, err := texts.FillFor(secrets.Caller{Tenant: "lines"}, tenantVault); err == nil || err.Error() != "secret KEY has control characters" {
		t.Errorf("secret with a line break: got %v, want an error", err)
	}
	if _, _, err := texts.Fill(tenantVault); err == nil {
		t.Error("Fill without a caller: got no error, want one")
	}
	if err := texts.CheckSecrets(func(string) string { return "" }); err != nil {
		t.Errorf("CheckSecrets: %v, want no error for secrets of tenants", err)
	}
}

// TestCallersFitHeaders: a value that a header cannot have as it is, is refused.
func TestCallersFitHeaders(t *testing.T) {
	t.Parallel()
	texts, _, err := secrets.ParseAll(map[string]string{"X": "{caller.subject}"})
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{
		"ann\r\nX-Admin: true", "ann\x00", "ann\x7f", "köln", "ann\u2028", "ann, bob", "ann;admin", `"ann"`, `a\b`, "",
	} {
		if filled, _, err := texts.FillFor(secrets.Caller{Tenant: "acme", Subject: subject}, tenantVault); err == nil {
			t.Errorf("subject %q: got %q, want an error", subject, filled)
		}
	}
	if _, _, err := texts.FillFor(secrets.Caller{Tenant: "acme"}, tenantVault); !errors.As(err, new(secrets.AnonymousError)) {
		t.Errorf("anonymous caller: got %v, want an AnonymousError", err)
	}
	for _, subject := range []string{"ann", "auth0|123", "CN=Ann Lee/O:x", "a(b)<c>@d[e]{f}"} {
		if filled, _, err := texts.FillFor(secrets.Caller{Tenant: "acme", Subject: subject}, tenantVault); err != nil || filled["X"] != subject {
			t.Errorf("subject %q: got %q, %v, want it unchanged", subject, filled["X"], err)
		}
	}
}

func TestUnknownMembersAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{caller.roles}", "{caller.}", "{caller.tenant.id}", "${tenantSecret:key}", "${caller.tenant}"} {
		if _, _, err := secrets.ParseAll(map[string]string{"X": text}); err == nil {
			t.Errorf("%s: got no error, want one", text)
		}
	}
}

// FuzzTenantSuffix: tenants have different suffixes, also where case does not count, and a suffix
// never leaves its folder.
func FuzzTenantSuffix(f *testing.F) {
	for _, pair := range [][2]string{{"acme", "Acme"}, {"a_41", "aA"}, {"a b", "a_20b"}, {"../x", ".._2fx"}, {"ß", "ss"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := secrets.TenantSuffix(a), secrets.TenantSuffix(b)
		if a != b && strings.EqualFold(x, y) {
			t.Errorf("%q and %q have the suffix %q, want two", a, b, x)
		}
		if strings.ContainsAny(x, "./\\") {
			t.Errorf("suffix of %q = %q, want no separator", a, x)
		}
	})
}

// TestTenantSuffix: the names of files that the guide documents.
func TestTenantSuffix(t *testing.T) {
	t.Parallel()
	for tenant, want := range map[string]string{
		"acme": "acme", "Acme Ltd.": "_41cme_20_4ctd_2e", "köln": "k_c3_b6ln", "a-7": "a-7", "a_b": "a_5fb",
	} {
		if got := secrets.TenantSuffix(tenant); got != want {
			t.Errorf("suffix of %q = %s, want %s", tenant, got, want)
		}
	}
}
