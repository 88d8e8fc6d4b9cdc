// Package request reads HTTP requests for the handlers of the API: bodies, segments of the path,
// parameters, IDs, the caller, and the channel of a decision. All of its errors are problems that
// name the wrong member.
package request
