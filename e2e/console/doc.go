// Package console tests the console in Chromium, against the real program. Pages of the console may
// not print an error or a warning, violate their Content-Security-Policy, or send requests to other
// hosts: the kit fails the test.
package console
