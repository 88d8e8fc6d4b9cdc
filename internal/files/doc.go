// Package files stores the files of tenants: images, documents and audio that callers upload, and that
// messages of threads refer to by their URLs.
//
//	upload ─► type, size, scan ─► encryption with the key of the blob ─► Storage
//	                                  bucket "files":  blob.<tenant>.<blob>       key, size
//	                                                   content.<tenant>.<digest>  blob, files that have it
//	                                                   file.<tenant>.<file>       name, owner, threads
//	                                                   file.<tenant>.<upload>     name, owner, parts
//	                                                   file.<tenant>.<reservation>  size
//	                                                   secret.<tenant>            key of the digests
//
// A file has a name, an owner, and the threads that refer to it. Its bytes are a blob. Files of one
// tenant with the same bytes share a blob: the digest is an HMAC with a secret of the tenant.
//
// The entry of a blob is written before its bytes, and the entry of a file last. A file that was
// acknowledged is therefore complete. What an interrupted upload or deletion leaves is in the bucket,
// where Sweep finds it.
//
// A resumable upload collects its bytes in parts, each a blob with a key of its own. When all bytes have
// arrived, they are stored as those of any other upload, under an ID that derives from the upload's. So a
// process that dies in between loses nothing, and a repetition stores no second file. The revision of the
// upload's entry is the fence between requests that write to it, in whatever process they run.
//
// A file is deleted with the last thread that refers to it, or a day after its upload if no thread
// does. The last file of a blob takes the blob with it, and first the blob's key.
package files
