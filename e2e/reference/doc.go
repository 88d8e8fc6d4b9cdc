// Package reference compares packages agui and agui/protobuf with AG-UI's reference packages:
// @ag-ui/proto writes and reads the same bytes, and @ag-ui/client makes the same messages and state
// of a stream. It needs node, and no server.
package reference
