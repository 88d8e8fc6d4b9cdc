//go:build !linux

package apinode

import "net"

// limitUnsent does nothing: see unsent_linux.go.
func limitUnsent(*net.TCPConn) {}
