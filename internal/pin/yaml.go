package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// findInYAML returns the images of a YAML file: the values of all keys "image". It leaves out those
// of mappings with a key "build", because Compose builds these images.
func findInYAML(content []byte) ([]span, error) {
	var images []span
	for documents := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var document yaml.Node
		if err := documents.Decode(&document); errors.Is(err, io.EOF) {
			return images, nil
		} else if err != nil {
			return nil, err
		}
		for _, image := range imagesIn(&document) {
			at, err := locate(content, image)
			if err != nil {
				return nil, err
			}
			images = append(images, at)
		}
	}
}

// imagesIn returns the values of the keys "image" in a node and the nodes below it.
func imagesIn(n *yaml.Node) []*yaml.Node {
	var images []*yaml.Node
	if n.Kind == yaml.MappingNode {
		if image := valueOf(n, "image"); image != nil && image.Kind == yaml.ScalarNode && valueOf(n, "build") == nil {
			images = append(images, image)
		}
	}
	for _, child := range n.Content {
		images = append(images, imagesIn(child)...)
	}
	return images
}

// valueOf returns the value of a mapping's key, also if it is an alias; nil = there is no such key.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			value := mapping.Content[i+1]
			if value.Kind == yaml.AliasNode {
				return value.Alias
			}
			return value
		}
	}
	return nil
}

// locate returns the place of a scalar's text. The position of the node can precede it, by an anchor
// or a quote.
func locate(content []byte, scalar *yaml.Node) (span, error) {
	start := 0
	for range scalar.Line - 1 {
		start += bytes.IndexByte(content[start:], '\n') + 1
	}
	line, _, _ := bytes.Cut(content[start:], []byte("\n"))
	before := len(string([]rune(string(line))[:scalar.Column-1])) // a column counts characters
	at := bytes.Index(line[before:], []byte(scalar.Value))
	if at < 0 {
		return span{}, fmt.Errorf("line %d: write the image %q on the line of its key", scalar.Line, scalar.Value)
	}
	start += before + at
	return span{start, start + len(scalar.Value)}, nil
}
