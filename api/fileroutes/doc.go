// Package fileroutes serves files: it receives uploads, and sends files to callers that may read them.
//
// Files are content of users on the origin of the API. So a response never lets a browser run scripts in
// it: the type is that of the content and is not sniffed, a policy forbids scripts, and only images,
// audio and PDFs are shown in the page.
package fileroutes
