// Package links makes links that decide one approval, for mails and chats. A link is signed and
// valid for one decision about one set of arguments, until it expires. A link that names its
// approver decides once, without a login; another one decides as the person who has signed in.
//
// The token of a link contains all of that, and an HMAC with a key that all API nodes share. A
// key-value bucket has the key, unless the configuration sets one, and the nonces of the links that
// were used.
package links
