package main

import (
	"bytes"
	"regexp"
	"strings"
)

var (
	// syntaxLine is the directive that names the image of the builder's frontend.
	syntaxLine = regexp.MustCompile(`^#\s*syntax\s*=\s*(\S+)`)
	argLine    = regexp.MustCompile(`(?i)^\s*ARG\s+(\w+)="?([^\s"]+)`)
	fromLine   = regexp.MustCompile(`(?i)^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?`)
	// sourceOption is the stage or image from which COPY copies, or that RUN mounts.
	sourceOption = regexp.MustCompile(`(?i)(?:^\s*COPY\s.*?--from=|--mount=(?:\S*,)?from=)([^\s,]+)`)
	// loneVariable is a name that is a variable and nothing else.
	loneVariable = regexp.MustCompile(`^\$\{?(\w+)\}?$`)
	stageNumber  = regexp.MustCompile(`^\d+$`)
)

// findInDockerfile returns the images of a Dockerfile: of its syntax directive, and of FROM,
// COPY --from and RUN --mount. If the image is the value of an ARG, it returns the ARG's default.
func findInDockerfile(content []byte) ([]span, error) {
	var images []span
	stages, args := map[string]bool{"scratch": true}, map[string]span{}
	add := func(image span) {
		name := string(content[image.start:image.end])
		if stages[strings.ToLower(name)] || stageNumber.MatchString(name) {
			return
		}
		if variable := loneVariable.FindStringSubmatch(name); variable != nil {
			if value, ok := args[variable[1]]; ok {
				image = value
			}
		}
		images = append(images, image)
	}
	start := 0 // of the line
	for line := range bytes.Lines(content) {
		if m := syntaxLine.FindSubmatchIndex(line); m != nil {
			add(span{start + m[2], start + m[3]})
		} else if m := argLine.FindSubmatchIndex(line); m != nil {
			args[string(line[m[2]:m[3]])] = span{start + m[4], start + m[5]}
		} else if m := fromLine.FindSubmatchIndex(line); m != nil {
			add(span{start + m[2], start + m[3]})
			if m[4] >= 0 {
				stages[strings.ToLower(string(line[m[4]:m[5]]))] = true
			}
		}
		for _, m := range sourceOption.FindAllSubmatchIndex(line, -1) {
			add(span{start + m[2], start + m[3]})
		}
		start += len(line)
	}
	return images, nil
}
