package links_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/approvals/links"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a keeper with a key.
func open(t *testing.T, l *stream.Log, key string) *links.Keeper {
	t.Helper()
	k, err := links.Open(t.Context(), l, []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// link returns a link that expires after some time.
func link(expires time.Duration) links.Link {
	return links.Link{
		Tenant: "shop", Thread: "t/1", Approval: "int_x", Decision: "approve", Args: "d", Approver: "alice", Issuer: "bot",
		Expires: time.Now().Add(expires),
	}
}

// token returns the token of a new link.
func token(t *testing.T, k *links.Keeper, l links.Link) string {
	t.Helper()
	text, err := k.Token(l)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestLinkReturnsItsContent(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	k, other := open(t, l, ""), open(t, l, "") // two API processes
	want := link(time.Hour)
	text, again := token(t, k, want), token(t, k, want)
	got, err := other.Read(text)
	if err != nil || got.Nonce == "" || text == again {
		t.Fatalf("Read = %+v, %v, want a nonce, and another token for each link", got, err)
	}
	want.Nonce, want.Expires = got.Nonce, want.Expires.UTC().Truncate(time.Second)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if used, err := k.Used(t.Context(), got); used || err != nil {
		t.Errorf("Used before the use = %v, %v, want false", used, err)
	}
	for range 2 {
		if err := k.Use(t.Context(), got); err != nil {
			t.Fatal(err)
		}
	}
	if used, err := other.Used(t.Context(), got); !used || err != nil {
		t.Errorf("Used after the use = %v, %v, want true", used, err)
	}
	second, err := k.Read(again)
	if err != nil {
		t.Fatal(err)
	}
	if used, err := k.Used(t.Context(), second); used || err != nil {
		t.Errorf("Used of another link = %v, %v, want false", used, err)
	}
}

func TestForgedLinksAreRejected(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	k := open(t, l, "")
	good := token(t, k, link(time.Hour))
	said, signature, _ := strings.Cut(good, ".")
	body, err := base64.RawURLEncoding.DecodeString(said)
	if err != nil {
		t.Fatal(err)
	}
	forged := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(body), "approve", "rejects", 1)))
	for name, text := range map[string]string{
		"empty": "", "no signature": said, "an empty signature": said + ".", "forged": forged + "." + signature,
		"a byte more": good + "A", "another form": said + "=." + signature, "a key of others": token(t, open(t, l, strings.Repeat("k", 32)), link(time.Hour)),
		"long": strings.Repeat("a", links.MaxToken) + "." + signature,
	} {
		if _, err := k.Read(text); !errors.Is(err, links.ErrInvalid) {
			t.Errorf("%s: got %v, want %v", name, err, links.ErrInvalid)
		}
	}
	if got, err := k.Read(token(t, k, link(-time.Second))); !errors.Is(err, links.ErrExpired) || got.Thread != "t/1" {
		t.Errorf("expired link: got %v, %v, want its thread and %v", got, err, links.ErrExpired)
	}
	if _, err := links.Open(t.Context(), l, []byte("short")); err == nil {
		t.Error("Open with a short key: got no error, want one")
	}
}

func FuzzRead(f *testing.F) {
	k, err := links.Open(f.Context(), streamtest.Open(f), []byte(strings.Repeat("k", 32)))
	if err != nil {
		f.Fatal(err)
	}
	good, err := k.Token(link(time.Hour))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("e30.AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := k.Read(text); err == nil && text != good {
			t.Errorf("Read of %q: got no error, want one", text)
		}
	})
}
