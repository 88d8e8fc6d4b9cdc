package llm

// MediaReader is implemented by models that cannot use every [Media] part.
type MediaReader interface {
	// Unusable tells why requests for the model leave a part out of messages with that role. It
	// returns "" for a part that is sent.
	Unusable(model string, role Role, media Media) Unusable
}

// Unusable is the reason why a request leaves out a part.
type Unusable string

// The reasons.
const (
	// UnusableType: the model does not read media of this kind or media type.
	UnusableType Unusable = "type_not_supported"
	// UnusableURL: the model reads media of this type inline, and not by URL.
	UnusableURL Unusable = "url_not_supported"
	// UnusableInResult: the model reads media in what users say, and not in results of tools.
	UnusableInResult Unusable = "tool_result_not_supported"
	// UnusableData: the data is not base64, or not what its media type says.
	UnusableData Unusable = "invalid_data"
	// UnusableAddress: the URL is neither http nor https.
	UnusableAddress Unusable = "invalid_url"
	// UnusableSource: the part refers to a file that a provider keeps. No model is sent such a
	// part.
	UnusableSource Unusable = "source_not_supported"
)
