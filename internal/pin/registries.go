package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// registries has the digests that registries have returned, by the names of images. So an image has
// the same digest in all files, even if its tag moves between two files.
type registries map[string]string

// lookUp returns the digest of an image's tag.
func (r registries) lookUp(ctx context.Context, image string) (string, error) {
	if digest := r[image]; digest != "" {
		return digest, nil
	}
	if strings.Contains(image, "$") {
		return "", fmt.Errorf("%s has a variable: write the name of the image in full, or as the default of one ARG", image)
	}
	if !strings.Contains(image[strings.LastIndex(image, "/")+1:], ":") {
		return "", fmt.Errorf("%s has no tag: name the version of the image", image)
	}
	tag, err := name.NewTag(image)
	if err != nil {
		return "", err
	}
	// Get computes the digest from the manifest. Not all registries return it in a header.
	manifest, err := remote.Get(tag, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return "", fmt.Errorf("the digest of %s: %w", image, err)
	}
	r[image] = manifest.Digest.String()
	return r[image], nil
}
