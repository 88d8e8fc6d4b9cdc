// Package links makes links by which somebody decides about one approval without signing in, as in
// a mail or a chat: signed, for one decision about one set of arguments by one person, for a time,
// and once.
//
// A link's token says all of that by itself, under an HMAC that only the apis can make; a bucket
// has the key, if no other was given, and which links were used.
package links
