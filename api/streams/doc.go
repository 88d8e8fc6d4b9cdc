// Package streams sends the events of a view to a client: as server-sent events, in AG-UI's binary
// format, or by another transport such as a socket. It ends streams when the server stops or the
// credentials expire, and counts the open ones.
package streams
