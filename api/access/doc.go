// Package access decides for the handlers of the API whether a caller may do something with a
// thread. It finds the owner and the shares of the thread, and asks the policies
// (internal/auth/policy).
//
// It is also the only way in which handlers address a thread, so no caller reaches a thread of
// another tenant: to the caller it does not exist.
package access
