// Package proto holds agui/protobuf against the reference implementation of the binary wire,
// @ag-ui/proto: what either writes, both read alike. It needs node, and no server.
package proto
