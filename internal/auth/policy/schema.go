package policy

import (
	_ "embed" // for schemaText
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	cedarschema "github.com/cedar-policy/cedar-go/x/exp/schema"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"
)

//go:embed schema.cedarschema
var schemaText []byte

// schema finds mistakes in policies. Without it, a policy with a misspelled name has no effect.
type schema struct {
	known     *resolved.Schema
	validator *validate.Validator
}

// newSchema returns the schema of schema.cedarschema.
func newSchema() (*schema, error) {
	var parsed cedarschema.Schema
	parsed.SetFilename("schema.cedarschema")
	if err := parsed.UnmarshalCedar(schemaText); err != nil {
		return nil, err
	}
	known, err := parsed.Resolve()
	if err != nil {
		return nil, err
	}
	// The strict mode refuses sets of users, roles and groups.
	return &schema{known, validate.New(known, validate.WithPermissive())}, nil
}

// check returns an error for a policy with an unknown name or attribute, or with an action whose
// resource is of another type.
func (s *schema) check(p *cedar.Policy) error {
	tree := (*ast.Policy)(p.AST())
	entities, types := names(tree)
	for _, name := range types {
		if err := s.checkType(name); err != nil {
			return err
		}
	}
	for _, uid := range entities {
		if err := s.checkEntity(uid); err != nil {
			return err
		}
	}
	if err := s.validator.Policy("", tree); err != nil {
		lines := strings.Split(err.Error(), "\n") // in no order
		slices.Sort(lines)
		return fmt.Errorf("does not fit the actions and attributes in docs/guides/authorization.md: %s", strings.Join(lines, "; "))
	}
	return nil
}

// checkType returns an error for an unknown type of entities. The type of actions has no other
// entities, so it is unknown where a policy names a type.
func (s *schema) checkType(name cedar.EntityType) error {
	_, isEntity := s.known.Entities[name]
	_, isEnum := s.known.Enums[name]
	if isEntity || isEnum {
		return nil
	}
	known := slices.Concat(slices.Collect(maps.Keys(s.known.Entities)), slices.Collect(maps.Keys(s.known.Enums)))
	return fmt.Errorf("unknown type %q; the types are %s", name, list(known))
}

// checkEntity returns an error for an entity that does not exist: an action or a group with another
// name, or a user or an agent without its tenant.
func (s *schema) checkEntity(uid cedar.EntityUID) error {
	if uid.Type == "Action" {
		if _, ok := s.known.Actions[uid]; ok {
			return nil
		}
		var known []cedar.String
		for action := range s.known.Actions {
			known = append(known, action.ID)
		}
		return fmt.Errorf("unknown action %q; the actions are %s", uid.ID, list(known))
	}
	if err := s.checkType(uid.Type); err != nil {
		return err
	}
	if enum, ok := s.known.Enums[uid.Type]; ok && !slices.Contains(enum.Values, uid) {
		var known []cedar.String
		for _, value := range enum.Values {
			known = append(known, value.ID)
		}
		return fmt.Errorf("unknown %s %q; there are %s", uid.Type, uid.ID, list(known))
	}
	if (uid.Type == "User" || uid.Type == "Agent") && !strings.Contains(string(uid.ID), "/") {
		return fmt.Errorf("%s lacks the tenant: write %s::\"<tenant>/%s\"", uid, uid.Type, uid.ID)
	}
	return nil
}

// list returns names in order, separated by commas.
func list[S ~string](names []S) string {
	slices.Sort(names)
	var all []string
	for _, name := range names {
		all = append(all, string(name))
	}
	return strings.Join(all, ", ")
}

// names returns the entities and the types of entities that a policy names.
func names(p *ast.Policy) (entities []cedar.EntityUID, types []cedar.EntityType) {
	for _, scope := range []ast.IsScopeNode{p.Principal, p.Action, p.Resource} {
		switch s := scope.(type) {
		case ast.ScopeTypeEq:
			entities = append(entities, s.Entity)
		case ast.ScopeTypeIn:
			entities = append(entities, s.Entity)
		case ast.ScopeTypeInSet:
			entities = append(entities, s.Entities...)
		case ast.ScopeTypeIs:
			types = append(types, s.Type)
		case ast.ScopeTypeIsIn:
			entities, types = append(entities, s.Entity), append(types, s.Type)
		}
	}
	for _, condition := range p.Conditions {
		ast.Inspect(ast.NewNode(condition.Body), func(n ast.IsNode) bool {
			switch n := n.(type) {
			case ast.NodeValue:
				if uid, ok := n.Value.(cedar.EntityUID); ok {
					entities = append(entities, uid)
				}
			case ast.NodeTypeIs:
				types = append(types, n.EntityType)
			case ast.NodeTypeIsIn:
				types = append(types, n.EntityType)
			}
			return true
		})
	}
	return entities, types
}
