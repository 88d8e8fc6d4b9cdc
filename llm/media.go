package llm

// MediaReader is implemented by models that accept only some [Media] parts. Callers use it to
// report to the user which parts of a message the model does not receive.
type MediaReader interface {
	// Unusable returns why a request for the model omits the part from messages of that role, or ""
	// if the request contains the part.
	Unusable(model string, role Role, media Media) Unusable
}

// Unusable is the reason why a request omits a [Media] part. The empty string means that the
// request contains it.
type Unusable string

// The reasons why a request omits a part.
const (
	// UnusableType: the model does not accept this kind of media or this media type.
	UnusableType Unusable = "type_not_supported"
	// UnusableURL: the model accepts this media type inline, but not by URL.
	UnusableURL Unusable = "url_not_supported"
	// UnusableInResult: the model accepts the part in user messages, but not in tool results.
	UnusableInResult Unusable = "tool_result_not_supported"
	// UnusableData: the data is not base64, or does not match its media type.
	UnusableData Unusable = "invalid_data"
	// UnusableAddress: the URL is neither http nor https.
	UnusableAddress Unusable = "invalid_url"
	// UnusableSource: the part refers to a file that is stored at a provider. No provider package
	// sends such a part.
	UnusableSource Unusable = "source_not_supported"
	// UnusableFile: the part refers to a file that was deleted, or that is not one of the thread.
	// UnusableSize: the file is larger than requests may be. The caller of the provider package
	// finds both.
	UnusableFile Unusable = "file_not_found"
	UnusableSize Unusable = "file_too_large"
)
