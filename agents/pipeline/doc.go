// Package pipeline walks a tree of steps: from what has happened to what comes next.
package pipeline
