package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"github.com/perdure/perdure/agents"
)

// missingFolderError reports that the folder of definitions does not exist.
type missingFolderError struct{ folder string }

func (e *missingFolderError) Error() string {
	return e.folder + " does not exist; its definitions are published when it appears"
}

// loadFolder reads the folder of definitions. It fails with a *missingFolderError if there is no
// folder.
func loadFolder(dir string) (*agents.Folder, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, &missingFolderError{folder: dir}
	}
	return agents.LoadDir(dir)
}

// declarations returns the tools, MCP servers and scripts of a folder as a text, without their
// positions in files. Equal texts mean that a worker has no need to restart.
func declarations(folder *agents.Folder) (string, error) {
	var all struct {
		Tools   []agents.Tool
		Servers []agents.Server
		Scripts []agents.Script
	}
	for _, t := range folder.Tools {
		all.Tools = append(all.Tools, *t)
		all.Tools[len(all.Tools)-1].Position = agents.SourcePosition{}
	}
	for _, s := range folder.Servers {
		all.Servers = append(all.Servers, *s)
		all.Servers[len(all.Servers)-1].Position = agents.SourcePosition{}
	}
	for _, s := range folder.Scripts {
		all.Scripts = append(all.Scripts, *s)
		all.Scripts[len(all.Scripts)-1].Position = agents.SourcePosition{}
	}
	text, err := json.Marshal(all)
	return string(text), err
}
