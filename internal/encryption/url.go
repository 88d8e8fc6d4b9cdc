package encryption

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// schemes are the schemes of the URLs of the operator's keys.
var schemes = []string{"base64key", "file", "hashivault", "awskms", "gcpkms", "azurekeyvault"}

// ParseURLs parses the URLs of the operator's keys, at least one, separated by white space. Errors do
// not contain keys.
func ParseURLs(text string) ([]*url.URL, error) {
	var urls []*url.URL
	for i, field := range strings.Fields(text) {
		u, err := parseURL(field)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		urls = append(urls, u)
	}
	if len(urls) == 0 {
		return nil, errors.New("must have a key")
	}
	return urls, nil
}

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("is not a URL")
	case !slices.Contains(schemes, u.Scheme):
		return nil, fmt.Errorf("must begin with one of %s://", strings.Join(schemes, "://, "))
	case u.Scheme == "base64key":
		if key, err := base64.URLEncoding.DecodeString(u.Host); err != nil || len(key) != 32 {
			return nil, errors.New("base64key:// must have 32 bytes in base64, with - and _ in place of + and /")
		}
	case u.Scheme == "file" && (u.Host != "" || u.Path == ""):
		return nil, errors.New("must be the path of a keyset, such as file:///etc/perdure/keyset.json")
	case u.Host == "" && u.Path == "":
		return nil, fmt.Errorf("%s:// must have the name of a key", u.Scheme)
	}
	return u, nil
}
