package links

import "time"

// Link is the content of a token. The names of its JSON members are short because they become part
// of URLs.
type Link struct {
	// Tenant, Thread and Approval identify the interrupt; Decision is approve or reject, as for the
	// API.
	Tenant   string `json:"t"`
	Thread   string `json:"th"`
	Approval string `json:"a"`
	Decision string `json:"d"`
	// Args is the digest of the tool call's arguments. The link is invalid for other arguments.
	Args string `json:"ar"`
	// Approver is the subject that decides by the link without signing in; "" = the person who opens
	// the link has to sign in. The token has no roles: those at the time of the decision count.
	Approver string `json:"s,omitempty"`
	// Issuer is the subject that created the link; "" = an anonymous caller.
	Issuer string `json:"i,omitempty"`
	// Expires is when the link becomes invalid, in whole seconds.
	Expires time.Time `json:"e"`
	// Nonce identifies the link. Token sets it.
	Nonce string `json:"n"`
}
