package egress

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// PrivateAddressError says that a host is at an address that is not of the public internet.
type PrivateAddressError struct {
	Address netip.Addr
}

func (e *PrivateAddressError) Error() string {
	return fmt.Sprintf("egress: %s is not an address of the public internet", e.Address)
}

// control is net.Dialer's hook between the resolution of a name and the connection.
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

// special are the blocks of the registries of special-purpose addresses (RFC 6890) that package
// netip has no name for, and IPv6's ways to say an IPv4 address that nobody needs to get through.
var special = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

var (
	globalIPv6 = netip.MustParsePrefix("2000::/3")
	// nat64 is how networks without IPv4 reach it: the address is in the last four bytes.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// public reports whether an address is of the public internet.
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
