package agents

import "strings"

// ClientPrefix begins the patterns of tools that clients bring with their input.
const ClientPrefix = "client:"

// SplitTools tells the patterns of tools that workers have from those of clients' tools.
func SplitTools(patterns []string) (ours, clients []string) {
	for _, p := range patterns {
		if strings.HasPrefix(p, ClientPrefix) {
			clients = append(clients, p)
		} else {
			ours = append(ours, p)
		}
	}
	return ours, clients
}
