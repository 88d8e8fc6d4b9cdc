// Package links makes links that decide one approval without a login, for mails and chats. A link
// is signed and valid for one decision about one set of arguments, on behalf of one principal,
// until it expires or was used.
//
// The token of a link contains all of that, and an HMAC with a key that all API nodes share. A
// key-value bucket has the key, unless the configuration sets one, and the nonces of the links that
// were used.
package links
