package encryption_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/encryption"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// BenchmarkTokenRecord writes one token after the other, each as a record that the server has
// acknowledged, over TCP.
func BenchmarkTokenRecord(b *testing.B) {
	for name, o := range map[string]stream.Options{
		"plain":     {},
		"encrypted": {Cipher: encryption.Cipher([]encryption.OperatorKey{operatorKey("a")})},
	} {
		b.Run(name, func(b *testing.B) {
			s := streamtest.Server(b)
			nc, err := nats.Connect(s.ClientURL())
			if err != nil {
				b.Fatal(err)
			}
			defer nc.Close()
			l, err := stream.Open(b.Context(), nc, o)
			if err != nil {
				b.Fatal(err)
			}
			a, _, err := l.Begin(b.Context(), stream.Place{Run: run, Lane: stream.LaneMain, Step: "1", Execution: "e"})
			if err != nil {
				b.Fatal(err)
			}
			defer a.Close()
			token := &agui.TextMessageContent{MessageID: "msg_" + strings.Repeat("x", 24), Delta: " token"}
			for b.Loop() {
				if err := a.Emit(b.Context(), token); err != nil {
					b.Fatal(err)
				}
				if err := a.Flush(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEncrypt encrypts and decrypts a record of one token, without a server.
func BenchmarkEncrypt(b *testing.B) {
	l, err := stream.Open(b.Context(), streamtest.Connect(b, streamtest.Server(b)), stream.Options{})
	if err != nil {
		b.Fatal(err)
	}
	k, err := encryption.Open(b.Context(), l, []encryption.OperatorKey{operatorKey("a")})
	if err != nil {
		b.Fatal(err)
	}
	plain, place := []byte(strings.Repeat("x", 100)), []byte("perdure.acme.thread-1.run-1.main\x00events 1 w 3 1")
	ciphertext, err := k.Encrypt(b.Context(), "acme.thread-1", plain, place)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encrypt", func(b *testing.B) {
		for b.Loop() {
			if _, err := k.Encrypt(b.Context(), "acme.thread-1", plain, place); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decrypt", func(b *testing.B) {
		for b.Loop() {
			if _, err := k.Decrypt(b.Context(), "acme.thread-1", ciphertext, place); err != nil {
				b.Fatal(err)
			}
		}
	})
}
