// Package request reads HTTP requests for the handlers of the API: bodies, segments of the path,
// parameters, IDs, the caller, and the channel of a decision. All errors about the request are
// problems that name the wrong member. Frames of WebSockets use the checks that do not need HTTP.
package request
