// Package sessionroutes serves the routes by which users of web pages sign in and out.
//
//	GET  /auth/login                the browser goes to the OpenID provider
//	GET  /auth/callback             … and comes back: a session begins
//	GET  /auth/session              the caller, and when the session ends
//	POST /auth/logout               the session ends
//	POST /auth/backchannel-logout   the provider ends sessions
//
// Package internal/auth/sessions has the sessions. Only /auth/session needs credentials.
package sessionroutes
