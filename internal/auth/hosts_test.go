package auth_test

import (
	"testing"

	"github.com/perdure/perdure/internal/auth"
)

func TestHosts(t *testing.T) {
	t.Parallel()
	hosts := auth.Hosts{"Agents.example", "*.shop.example", "10.0.0.7", "fd00::7"}
	for host, want := range map[string]bool{
		"agents.example": true, "AGENTS.example:8080": true, "agents.example.": true,
		"a.shop.example": true, "shop.example": false, "a.b.shop.example": false,
		"10.0.0.7:80": true, "[fd00::7]:80": true, "[fd00::7]": true, "10.0.0.8": false,
		"localhost:8080": true, "LOCALHOST": true, "127.1.2.3:80": true, "[::1]:80": true, "[::1]": true, "app.localhost": true, "[::ffff:127.0.0.1]:1": true,
		"rebind.example": false, "agents.example.rebind.example": false, "127.0.0.1.rebind.example": false, "": false, "0.0.0.0": false, ".": false,
	} {
		if got := hosts.Allow(host); got != want {
			t.Errorf("host %q: allowed: %t, want %t", host, got, want)
		}
	}
	for host, want := range map[string]bool{"localhost": true, "agents.example": false, "": false} {
		if got := auth.Hosts(nil).Allow(host); got != want {
			t.Errorf("host %q without a list: allowed: %t, want %t", host, got, want)
		}
	}
	if !(auth.Hosts{"*"}).Allow("agents.example") {
		t.Error("host agents.example with *: allowed: false, want true")
	}
}
