// Package problem has the errors that the API answers with (RFC 9457), and the mapping of all other
// errors to them.
//
// Handlers and what they call return errors. [Of] maps an error to a [Problem], once, at the edge:
// [Writer.Refuse] for HTTP, and the session of a socket for frames.
package problem
