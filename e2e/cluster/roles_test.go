package cluster

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/perdure/perdure/e2e/kit"
)

// TestRolesOfNATS: with the deployed permissions, the API and the worker do all that they must, and
// neither can do what belongs to the other one. The administrator rotates keys. The output of a
// process that lacks a permission fails every test of a cluster (kit.Output).
func TestRolesOfNATS(t *testing.T) {
	t.Parallel()
	c := kit.NewCluster(t)
	c.Env = append(c.Env, "PERDURE_BUDGET_TENANT_TOKENS_PER_DAY=1000000000", "PERDURE_ENCRYPTION_KEYS=base64key://AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	c.StartNATS(t, 1)
	c.StartTemporal(t)
	g := c.StartAPI(t)
	c.StartWorker(t)
	useEachFeature(t, g)
	rotateKeys(t, c)

	const linkKey = "$KV.PERDURE_links.key"
	admin := dialAs(t, c, "perdure-admin")
	reply, err := admin.Request("$JS.API.DIRECT.GET.KV_PERDURE_links."+linkKey, nil, kit.WaitTimeout)
	if err != nil || len(reply.Data) < 32 {
		t.Fatalf("the key of links: %v, want the administrator to read it", err)
	}
	for user, subjects := range map[string][]string{
		"perdure-worker": {
			"$JS.API.DIRECT.GET.KV_PERDURE_links." + linkKey, "$JS.API.DIRECT.GET.KV_PERDURE_links", "$JS.API.STREAM.MSG.GET.KV_PERDURE_links",
			"$JS.API.CONSUMER.CREATE.KV_PERDURE_links.spy", "$JS.API.CONSUMER.CREATE.KV_PERDURE_links.spy." + linkKey,
			"$JS.API.CONSUMER.DURABLE.CREATE.KV_PERDURE_links.spy", "$JS.API.STREAM.CREATE.spy", "$JS.API.STREAM.UPDATE.PERDURE",
			"$JS.API.STREAM.DELETE.PERDURE", "$JS.API.STREAM.PURGE.PERDURE", "$JS.API.STREAM.SNAPSHOT.KV_PERDURE_links", linkKey,
			"$KV.PERDURE_agents.demo/1", "$KV.PERDURE_schedules.default.s", "$SYS.REQ.SERVER.PING", "$JS.API.STREAM.MSG.DELETE.KV_PERDURE_keys",
			"$JS.API.STREAM.PURGE.PERDURE_audit", "$JS.API.STREAM.MSG.DELETE.PERDURE_audit", "$JS.API.STREAM.UPDATE.PERDURE_audit", "$JS.API.STREAM.DELETE.PERDURE_audit",
			"$JS.API.CONSUMER.CREATE.PERDURE_audit.spy", "perdure_audit.platform",
		},
		"perdure-api": {
			"$JS.API.STREAM.CREATE.spy", "$JS.API.STREAM.UPDATE.PERDURE", "$JS.API.STREAM.DELETE.PERDURE",
			"$KV.PERDURE_budget.default", "$KV.PERDURE_workers.beat", "$KV.PERDURE_tools.worker", "$KV.PERDURE_tool_schemas.digest",
			"$JS.API.DIRECT.GET.KV_PERDURE_budget.default", "perdure-worker.worker.probe",
		},
	} {
		for _, subject := range subjects {
			nc := dialAs(t, c, user)
			err := nc.Publish(subject, nil)
			if err == nil {
				err = nc.FlushTimeout(kit.WaitTimeout)
			}
			if err == nil {
				err = nc.LastError()
			}
			wantViolation(t, user+" publishes to "+subject, err)
		}
		for _, subject := range []string{"_INBOX.>", "_INBOX.perdure-admin.>", "perdure.>", "$KV.>", ">"} {
			nc := dialAs(t, c, user)
			_, err := nc.SubscribeSync(subject)
			if err == nil {
				err = nc.FlushTimeout(kit.WaitTimeout)
			}
			if err == nil {
				err = nc.LastError()
			}
			wantViolation(t, user+" subscribes to "+subject, err)
		}
	}
}

// rotateKeys replaces the keys of all levels as the administrator.
func rotateKeys(t *testing.T, c *kit.Cluster) {
	t.Helper()
	for _, level := range []string{"threads", "tenants", "operator"} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(c.Programs, "perdure"), "keys", "rotate", level)
		cmd.Env = append(os.Environ(), "NATS_URL="+c.Addrs.NATS, "NATS_USER=perdure-admin", "NATS_PASSWORD="+kit.NATSPassword)
		cmd.Env = append(cmd.Env, c.Env...)
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "level=") {
			t.Errorf("keys rotate %s: got %v, %s, want no error and no line of the log", level, err, out)
		}
	}
}

// wantViolation checks that an error says that NATS refuses the permission.
func wantViolation(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, nats.ErrPermissionViolation) && (err == nil || !strings.Contains(strings.ToLower(err.Error()), "permissions violation")) {
		t.Errorf("%s: got %v, want a violation of permissions", what, err)
	}
}

// dialAs connects to the cluster's NATS as one of its users.
func dialAs(t *testing.T, c *kit.Cluster, user string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(c.Addrs.NATS, nats.UserInfo(user, kit.NATSPassword), nats.CustomInboxPrefix("_INBOX."+user), nats.NoReconnect(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// awaitFiring waits for the entry of the audit log about a firing, which the worker writes.
func awaitFiring(t *testing.T, g *kit.API, schedule string) {
	t.Helper()
	for late := time.After(kit.WaitTimeout); ; {
		resp, err := g.Get(t.Context(), "/v1/audit?action=schedule.fire", "")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(body), `"schedule":"`+schedule+`"`) {
			return
		}
		select {
		case <-late:
			t.Fatalf("audit log = %s, want the firing of %s", body, schedule)
		case <-time.After(50 * time.Millisecond): // poll interval
		}
	}
}

// useEachFeature uses each bucket of the log: approvals, links, schedules, large events, budgets,
// the index of threads, the deletion of a thread, and the report of usage.
func useEachFeature(t *testing.T, g *kit.API) {
	t.Helper()
	prompt := kit.Marked("Calculate, please. ") + kit.LongText(300_000)
	kit.ScriptCalculations(t, prompt, kit.Marked("Done."), "7*6")
	in := kit.NewInput(prompt)
	f := g.FollowAgent(t, kit.CarefulPath, in)
	f.Finish(t)
	kit.WantOutcome(t, f, "interrupt")
	id := kit.InterruptsOf(t, f.Events)[0].ID
	post := func(path string, body any, status int) {
		t.Helper()
		resp, err := g.Post(t.Context(), path, body)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("POST %s: got %s, want %d", path, resp.Status, status)
		}
	}
	post("/v1/threads/"+in.ThreadID+"/approvals/"+id+"/links", map[string]any{"decision": "approve"}, http.StatusCreated)
	f.Approve(t)

	news := kit.Marked("What is new?")
	kit.SharedModel.AnswerWith(t, news, kit.Marked("Nothing."))
	post("/v1/schedules", map[string]any{
		"id": "nightly", "agent": "assistant", "intervals": []any{map[string]any{"every": "24h"}}, "input": map[string]any{"messages": []any{map[string]any{"role": "user", "content": news}}},
	}, http.StatusCreated)
	post("/v1/schedules/nightly/trigger", nil, http.StatusNoContent)
	for late := time.After(kit.WaitTimeout); len(kit.SharedModel.Calls(t, news)) == 0; {
		select {
		case <-late:
			t.Fatal("the schedule starts no run")
		case <-time.After(50 * time.Millisecond): // poll interval
		}
	}
	awaitFiring(t, g, "nightly")
	resp, err := g.Get(t.Context(), "/v1/threads", "")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if status := g.Delete(t, in.ThreadID); resp.StatusCode != http.StatusOK || status != http.StatusNoContent {
		t.Errorf("list and deletion of threads: got %s and %d, want 200 and 204", resp.Status, status)
	}
	var usage struct{ Items []struct{ Runs int } }
	g.GetJSON(t, "/v1/usage", &usage)
	if len(usage.Items) == 0 || usage.Items[0].Runs == 0 {
		t.Errorf("report of usage = %+v, want the runs of the deleted thread", usage)
	}
}
