package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/stream"
)

// engine returns an engine with policies of the operator.
func engine(t testing.TB, operator string) *policy.Engine {
	t.Helper()
	e, err := policy.New(policy.Roles{PlatformAdmin: "root", TenantAdmin: "boss"}, policy.File{Name: "own.cedar", Text: []byte(operator)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// caller returns a principal of the tenant acme.
func caller(subject string, roles ...string) auth.Principal {
	return auth.Principal{Tenant: "acme", Subject: subject, Roles: roles}
}

var ann = "ann"

// threadOf returns a thread of the tenant acme.
func threadOf(owner *string, shares ...stream.Share) policy.Resource {
	return policy.Thread("acme", &stream.Access{Owner: owner, Shares: shares})
}

// check returns "" if a caller may do something, and else the rule of the denial.
func check(t *testing.T, e *policy.Engine, p auth.Principal, a policy.Action, r policy.Resource, c policy.Context) string {
	t.Helper()
	err := e.Check(p, a, r, c)
	if err == nil {
		return ""
	}
	var denied *policy.DeniedError
	if !errors.As(err, &denied) || denied.Action != a {
		t.Fatalf("Check = %v, want a denial of %s", err, a)
	}
	return denied.Rule
}

var threadActions = []policy.Action{policy.ReadThread, policy.RunThread, policy.ManageThread, policy.ReadInterrupt, policy.DecideInterrupt}

func TestWhoMayUseThread(t *testing.T) {
	t.Parallel()
	e := engine(t, "")
	private := threadOf(&ann)
	with := func(share stream.Share) (all [4]policy.Resource) {
		for i, level := range stream.AccessLevels {
			share.Access = level
			all[i] = threadOf(&ann, share)
		}
		return all
	}
	toBob, toFinance, toEveryone := with(stream.Share{Subject: "bob"}), with(stream.Share{Role: "finance"}), with(stream.Share{Everyone: true})
	approver := policy.Context{Approver: true}
	for name, tt := range map[string]struct {
		caller auth.Principal
		thread policy.Resource
		policy.Context
		may string // of threadActions: R(ead) X(run) M(anage) I(nterrupt) D(ecide)
	}{
		"owner":                    {caller("ann"), private, policy.Context{}, "RXMID"},
		"another":                  {caller("bob"), private, policy.Context{}, ""},
		"approver":                 {caller("bob"), private, approver, "ID"},
		"reader":                   {caller("bob"), toBob[0], policy.Context{}, "RI"},
		"runner":                   {caller("bob"), toBob[1], policy.Context{}, "RXI"},
		"decider":                  {caller("bob"), toBob[2], policy.Context{}, "RID"},
		"manager":                  {caller("bob"), toBob[3], policy.Context{}, "RXMID"},
		"not shared with":          {caller("cid"), toBob[3], policy.Context{}, ""},
		"role":                     {caller("bob", "finance"), toFinance[1], policy.Context{}, "RXI"},
		"other role":               {caller("bob", "sales"), toFinance[1], policy.Context{}, ""},
		"named like the role":      {caller("finance"), toFinance[1], policy.Context{}, ""},
		"everyone":                 {caller("bob"), toEveryone[0], policy.Context{}, "RI"},
		"administrator":            {caller("bob", "boss"), private, policy.Context{}, "RXMID"},
		"platform administrator":   {caller("bob", "root"), private, policy.Context{}, "RXMID"},
		"owner is unknown":         {caller("ann"), threadOf(nil), policy.Context{}, ""},
		"anonymous, unknown owner": {caller(""), threadOf(nil), policy.Context{}, ""},
		"anonymous":                {caller(""), threadOf(new(string)), policy.Context{}, "RXMID"},
	} {
		for i, action := range threadActions {
			want := strings.ContainsRune(tt.may, rune("RXMID"[i]))
			if rule := check(t, e, tt.caller, action, tt.thread, tt.Context); (rule == "") != want || rule != "" && rule != policy.RuleNone {
				t.Errorf("%s: %s: denied by %q, want permitted = %v", name, action, rule, want)
			}
		}
		// The same caller of another tenant may do nothing.
		other := tt.caller
		other.Tenant = "evil"
		for _, action := range threadActions {
			if rule := check(t, e, other, action, tt.thread, tt.Context); rule != "other-tenant" {
				t.Errorf("%s of another tenant: %s: denied by %q, want by other-tenant", name, action, rule)
			}
		}
	}
}

func TestWhoMayDoTheRest(t *testing.T) {
	t.Parallel()
	e := engine(t, "")
	for name, tt := range map[string]struct {
		caller   auth.Principal
		action   policy.Action
		resource policy.Resource
		want     string
	}{
		"begin a thread":              {caller("ann"), policy.CreateThread, policy.Tenant("acme"), ""},
		"begin a schedule":            {caller("ann"), policy.CreateSchedule, policy.Tenant("acme"), ""},
		"begin one elsewhere":         {caller("ann"), policy.CreateThread, policy.Tenant("evil"), "other-tenant"},
		"own schedule":                {caller("ann"), policy.ManageSchedule, policy.Schedule("acme", "ann"), ""},
		"schedule of another":         {caller("bob"), policy.ReadSchedule, policy.Schedule("acme", "ann"), policy.RuleNone},
		"schedule of the tenant":      {caller("bob", "boss"), policy.ManageSchedule, policy.Schedule("acme", "ann"), ""},
		"agent":                       {caller("ann"), policy.PublishAgent, policy.Agent("", "pay"), policy.RuleNone},
		"agent by tenant's admin":     {caller("ann", "boss"), policy.PublishAgent, policy.Agent("", "pay"), policy.RuleNone},
		"agent by the platform admin": {caller("ann", "root"), policy.PublishAgent, policy.Agent("", "pay"), ""},
		"agent of the tenant":         {caller("ann", "boss"), policy.PublishAgent, policy.Agent("acme", "pay"), ""},
		"the same by a user":          {caller("ann"), policy.PublishAgent, policy.Agent("acme", "pay"), policy.RuleNone},
		"agent of another tenant":     {caller("ann", "boss"), policy.PublishAgent, policy.Agent("evil", "pay"), "other-tenant"},
		"the same by the platform":    {caller("ann", "root"), policy.PublishAgent, policy.Agent("evil", "pay"), "other-tenant"},
		"definition of the tenant":    {caller("ann", "boss"), policy.ReadDefinition, policy.Agent("acme", "pay"), ""},
		"definition elsewhere":        {caller("ann", "root"), policy.ReadDefinition, policy.Agent("evil", "pay"), "other-tenant"},
		"a model":                     {caller("ann", "boss"), policy.UseModel, policy.Model("openai/gpt"), ""},
		"a built-in tool":             {caller("ann", "boss"), policy.UseTool, policy.Tool("calculate"), ""},
		"a tool of the operator":      {caller("ann", "boss"), policy.UseTool, policy.Tool("refund"), policy.RuleNone},
		"a tool of an MCP server":     {caller("ann", "boss"), policy.UseTool, policy.Tool("mcp:crm/find"), policy.RuleNone},
		"a program":                   {caller("ann", "boss"), policy.UseProgram, policy.Program("billing"), policy.RuleNone},
		"a remote agent":              {caller("ann", "boss"), policy.UseHost, policy.Host("agents.example.com"), policy.RuleNone},
	} {
		if rule := check(t, e, tt.caller, tt.action, tt.resource, policy.Context{}); rule != tt.want {
			t.Errorf("%s: denied by %q, want by %q", name, rule, tt.want)
		}
	}
}

// TestTenantsNamesDoNotMix: the subject of one tenant is not one of another tenant, whatever the
// names are.
func TestTenantsNamesDoNotMix(t *testing.T) {
	t.Parallel()
	e := engine(t, `@id("own") permit (principal == User::"a%2Fb/c", action, resource);`)
	tenant := func(name string) policy.Resource { return policy.Schedule(name, "someone") }
	if rule := check(t, e, auth.Principal{Tenant: "a/b", Subject: "c"}, policy.ReadSchedule, tenant("a/b"), policy.Context{}); rule != "" {
		t.Errorf("subject c of tenant a/b: denied by %q, want permitted", rule)
	}
	if rule := check(t, e, auth.Principal{Tenant: "a", Subject: "b/c"}, policy.ReadSchedule, tenant("a"), policy.Context{}); rule == "" {
		t.Error("subject b/c of tenant a is permitted, want denied")
	}
}

// TestEmptyRoleMakesNoAdministrator: without a role of administrators, an empty role of a caller
// gives nothing.
func TestEmptyRoleMakesNoAdministrator(t *testing.T) {
	t.Parallel()
	e, err := policy.New(policy.Roles{})
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range threadActions {
		if rule := check(t, e, caller("bob", ""), action, threadOf(&ann), policy.Context{}); rule == "" {
			t.Errorf("%s by a caller with an empty role is permitted, want denied", action)
		}
	}
}

func TestOperatorsPolicies(t *testing.T) {
	t.Parallel()
	e := engine(t, `
@id("auditors") permit (principal in Role::"auditor", action == Action::"readThread", resource is Thread);
@id("no-contractors") forbid (principal in Role::"contractor", action == Action::"createThread", resource);
@id("crm") permit (principal in Tenant::"acme", action == Action::"useTool", resource is Tool) when { resource.name like "mcp:crm/*" };
@id("broken") forbid (principal in Role::"odd", action, resource) when { User::"acme/gone".subject == "gone" };`)
	private := threadOf(&ann)
	for name, tt := range map[string]struct {
		caller   auth.Principal
		action   policy.Action
		resource policy.Resource
		want     string
	}{
		"permit":                       {caller("bob", "auditor"), policy.ReadThread, private, ""},
		"permit only what it says":     {caller("bob", "auditor"), policy.RunThread, private, policy.RuleNone},
		"no permit in another tenant":  {auth.Principal{Tenant: "evil", Roles: []string{"auditor"}}, policy.ReadThread, private, "other-tenant"},
		"a tool":                       {caller("bob"), policy.UseTool, policy.Tool("mcp:crm/find"), ""},
		"no tool in another tenant":    {auth.Principal{Tenant: "evil"}, policy.UseTool, policy.Tool("mcp:crm/find"), policy.RuleNone},
		"forbid":                       {caller("ann", "contractor"), policy.CreateThread, policy.Tenant("acme"), "no-contractors"},
		"a forbid that fails, forbids": {caller("ann", "odd"), policy.ReadThread, private, "broken"},
	} {
		if rule := check(t, e, tt.caller, tt.action, tt.resource, policy.Context{}); rule != tt.want {
			t.Errorf("%s: denied by %q, want by %q", name, rule, tt.want)
		}
	}
}

func TestInvalidPoliciesAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"permit (principal, action":                                "own.cedar",
		"\npermit (principal, action, resource);":                  "own.cedar: line 2: the policy needs a name",
		`@id("create") permit (principal, action, resource);`:      `another policy with @id("create")`,
		`@id("a") permit (principal, action, resource) when { x }`: "own.cedar",

		`@id("a") forbid (principal, action == Action::"readTread", resource);`:                                       `own.cedar: line 1: @id("a"): unknown action "readTread"; the actions are createFile, createLink, `,
		`@id("a") forbid (principal, action in [Action::"readThread", Action::"readTread"], resource);`:               `unknown action "readTread"`,
		`@id("a") forbid (principal, action, resource) when { [Action::"readTread"].contains(action) };`:              `unknown action "readTread"`,
		`@id("a") forbid (principal in Rolle::"guest", action, resource);`:                                            `unknown type "Rolle"; the types are Agent, File, Group, Host, Model, `,
		`@id("a") forbid (principal, action, resource is Threat);`:                                                    `unknown type "Threat"`,
		`@id("a") forbid (principal, action, resource) when { resource is Threat };`:                                  `unknown type "Threat"`,
		`@id("a") forbid (principal, action, resource) when { resource is Threat in Tenant::"acme" };`:                `unknown type "Threat"`,
		`@id("a") forbid (principal, action, resource) unless { principal in [Role::"a", Rolle::"b"] };`:              `unknown type "Rolle"`,
		`@id("a") forbid (principal in Group::"admins", action, resource);`:                                           `unknown Group "admins"; there are platform-administrators, tenant-administrators`,
		`@id("a") forbid (principal == User::"bob", action, resource);`:                                               `write User::"<tenant>/bob"`,
		`@id("a") forbid (principal, action == Action::"createThread", resource is Thread);`:                          `unable to find an applicable action`,
		`@id("a") forbid (principal == Role::"guest", action, resource);`:                                             `unable to find an applicable action`,
		`@id("a") forbid (principal, action == Action::"useTool", resource) when { principal.role == "guest" };`:      "attribute `role` on entity type `User` not found",
		`@id("a") forbid (principal, action == Action::"decideInterrupt", resource) unless { context.aprover };`:      "attribute `aprover` in context",
		`@id("a") forbid (principal, action == Action::"readThread", resource) when { resource.owner == principal };`: "optional attribute `owner`",
	} {
		_, err := policy.New(policy.Roles{}, policy.File{Name: "own.cedar", Text: []byte(text)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", text, err, want)
		}
	}
}

func TestLoadFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("README.md", "not a policy")
	if _, err := policy.Load(policy.Roles{}, folder); err == nil || !strings.Contains(err.Error(), folder+" has no file *.cedar") {
		t.Errorf("folder without policies: got %v, want an error with its name", err)
	}
	write("own.cedar", `@id("a") forbid (principal, action == Action::"readThread", resource);`)
	e, err := policy.Load(policy.Roles{}, folder)
	if err != nil {
		t.Fatal(err)
	}
	if rule := check(t, e, caller("ann"), policy.ReadThread, threadOf(&ann), policy.Context{}); rule != "a" {
		t.Errorf("own thread: denied by %q, want by a", rule)
	}
}

// TestPoliciesNameEveryAction: the schema has the actions of action.go, and no others.
func TestPoliciesNameEveryAction(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("action.go")
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, match := range regexp.MustCompile(`Action = "(\w+)"`).FindAllSubmatch(source, -1) {
		actions = append(actions, string(match[1]))
	}
	slices.Sort(actions)
	want := `unknown action "x"; the actions are ` + strings.Join(actions, ", ")
	_, err = policy.New(policy.Roles{}, policy.File{Name: "own.cedar", Text: []byte(`@id("a") permit (principal, action == Action::"x", resource);`)})
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want an error with %q", err, want)
	}
}

// TestGuideHasPolicies: the guide has the default policies, and its example of own policies is valid.
func TestGuideHasPolicies(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/guides/authorization.md")
	if err != nil {
		t.Fatal(err)
	}
	defaults, err := os.ReadFile("default.cedar")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(guide), "```cedar\n")
	if len(blocks) != 3 {
		t.Fatalf("number of blocks with policies = %d, want 2", len(blocks)-1)
	}
	shown, _, _ := strings.Cut(blocks[1], "```")
	if shown != string(defaults) {
		t.Error("docs/guides/authorization.md does not have the text of default.cedar")
	}
	own, _, _ := strings.Cut(blocks[2], "```")
	e := engine(t, own)
	if rule := check(t, e, caller("bob", "auditor"), policy.ReadThread, threadOf(&ann), policy.Context{}); rule != "" {
		t.Errorf("an auditor is denied by %q, want permitted", rule)
	}
	if rule := check(t, e, caller("bob", "contractor"), policy.CreateThread, policy.Tenant("acme"), policy.Context{}); rule != "no-contractors" {
		t.Errorf("a contractor is denied by %q, want by no-contractors", rule)
	}
}

func BenchmarkCheck(b *testing.B) {
	e, err := policy.New(policy.Roles{PlatformAdmin: "root", TenantAdmin: "boss"})
	if err != nil {
		b.Fatal(err)
	}
	p := caller("bob", "a", "b", "c", "d", "finance")
	thread := threadOf(&ann, stream.Share{Subject: "cid", Access: "read"}, stream.Share{Subject: "dan", Access: "run"}, stream.Share{Role: "finance", Access: "read"})
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Check(p, policy.ReadThread, thread, policy.Context{}); err != nil {
			b.Fatal(err)
		}
	}
}
