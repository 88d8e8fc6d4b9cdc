package egress

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// PrivateAddressError reports that a host has an address that is not on the public internet.
type PrivateAddressError struct {
	Address netip.Addr
}

func (e *PrivateAddressError) Error() string {
	return fmt.Sprintf("egress: %s is not an address on the public internet", e.Address)
}

// control implements [net.Dialer.Control]: it is called after the name was resolved and before the
// connection is made, with the address of this connection.
func control(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("egress: %w", err)
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return fmt.Errorf("egress: %w", err)
	}
	if !public(addr) {
		return &PrivateAddressError{Address: addr}
	}
	return nil
}

// special are the blocks of the IANA registries of special-purpose addresses (RFC 6890) for which
// package netip has no predicate, and the blocks of IPv6 that embed an IPv4 address (6to4, Teredo).
var special = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

var (
	globalIPv6 = netip.MustParsePrefix("2000::/3")
	// nat64 is the prefix by which IPv6-only networks reach IPv4 (RFC 6052). The IPv4 address is in
	// the last four bytes.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
)

// prefixes parses CIDR prefixes.
func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// public reports whether an address is on the public internet. An IPv4 address inside an IPv6
// address is checked as IPv4.
func public(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) {
		bytes := addr.As16()
		addr = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	if addr.Is6() && !globalIPv6.Contains(addr) {
		return false
	}
	for _, p := range special {
		if p.Contains(addr) {
			return false
		}
	}
	return addr.IsGlobalUnicast() && !addr.IsPrivate()
}
