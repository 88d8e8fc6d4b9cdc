// Package problem has the errors that the API answers with (RFC 9457), and the mapping of all other
// errors to them.
//
// Handlers, and the functions that they call, return errors. [Of] maps an error to a [Problem]
// once, at the edge: [Writer.Refuse] for HTTP, and the session of a WebSocket for frames. So an
// error has the same status and code over every transport. docs/reference/errors.md lists all
// codes.
package problem
