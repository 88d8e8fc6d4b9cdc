// Package attachments connects the messages of inputs with files (package files): it makes files of base64 data,
// and checks and records the files to which messages refer.
//
//	input ─► Extract: data becomes the URL of a file ─► judgment of the messages ─► Attach: the new
//	messages' files are stored, checked and get the thread ─► log
//
// The log and its snapshots so have URLs in place of data.
package attachments
