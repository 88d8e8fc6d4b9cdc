package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"testing"
)

// nameserver starts a server that answers every query for an IPv4 address with the same address,
// and returns the server's own address.
func nameserver(t *testing.T, address netip.Addr) string {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		question := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(question)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(reply(question[:n], address), from)
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return conn.LocalAddr().String()
}

// reply returns a DNS message (RFC 1035): the question, and an answer if the question asks for an A
// record.
func reply(question []byte, address netip.Addr) []byte {
	end := 12
	for question[end] != 0 {
		end += 1 + int(question[end])
	}
	end += 5
	m := append([]byte{}, question[:end]...)
	binary.BigEndian.PutUint16(m[2:], 0x8180) // an answer, recursion available, no error
	clear(m[6:12])
	if binary.BigEndian.Uint16(m[end-4:]) != 1 {
		return m
	}
	m[7] = 1
	m = append(m, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4) // the name above, A, IN, for 0 s, 4 bytes
	return append(m, address.AsSlice()...)
}

// TestNamesOfPrivateAddressesAreRefused: the check applies to the address that a name resolves to
// at dial time.
func TestNamesOfPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"169.254.169.254", "127.0.0.1", "10.0.0.1"} {
		where := nameserver(t, netip.MustParseAddr(text))
		dialer := newDialer(PublicOnly)
		dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "udp", where)
		}}
		transport := newTransport(dialer)
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://metadata.example.com/", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = transport.RoundTrip(req) //nolint:bodyclose // it returns no response
		var private *PrivateAddressError
		if !errors.As(err, &private) || private.Address.String() != text {
			t.Errorf("%s: got %v, want that it is private", text, err)
		}
		if failure, words := Explain("metadata.example.com", err); failure != Refused || words != "the address of metadata.example.com is not on the public internet, which is not allowed" {
			t.Errorf("Explain = %v, %s, want a refusal with the host", failure, words)
		}
	}
}
