// Package encryption encrypts what the log stores about threads, and the sessions of browsers, with
// AES-256-GCM of Tink. There are three levels of keys:
//
//	operator's key   outside of Perdure: a secret, a file, Vault or a cloud's key service
//	└─ tenant's key  keyset in the bucket "keys", encrypted with the operator's key
//	   └─ data key   keyset of a thread in the bucket, encrypted with the tenant's key
//	      └─ records, blobs, checkpoints, entries of the inbox and of the list of threads
//
// The sessions of browsers are encrypted like the entries of one thread, which belongs to no tenant
// (package sessions).
//
// A process keeps the keys that it used last in memory. It watches the bucket, and forgets a key that
// another process has changed or destroyed.
//
// Every keyset can have several keys: the first one, the primary, encrypts, and all of them decrypt.
// So a rotation (rotation.go) needs no coordination: a process that meets a key that it does not know
// reads the keyset again.
package encryption
