package links

import "time"

// Link is what a token says.
type Link struct {
	Tenant   string `json:"t"`
	Thread   string `json:"th"`
	Approval string `json:"a"`
	Decision string `json:"d"`
	// Args is the digest of the arguments that are decided about.
	Args string `json:"ar"`
	// Subject and Roles are of whom the decision is; empty = nobody in particular.
	Subject string   `json:"s,omitempty"`
	Roles   []string `json:"r,omitempty"`
	// Expires is when it is of no use any more, in whole seconds.
	Expires time.Time `json:"e"`
	// Nonce tells links that say the same apart. New links get one.
	Nonce string `json:"n"`
}
