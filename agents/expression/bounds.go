package expression

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
)

// CEL's cost limit counts operations. It does not see that one operation can build a text a
// thousand times longer than its arguments, or compare values that share their members and so are
// exponentially larger than their memory. This file bounds both: functions that multiply text check
// the size of their result first, comparisons the size of their operands, and the cost of a call
// grows with the texts and lists that it reads and makes.

const (
	// maxText bounds a text that a function builds, and all texts of a value together, in bytes.
	maxText = 4 << 20
	// maxCompared bounds the values in an operand of a comparison, including nested ones.
	maxCompared = 100_000
	// bytesPerCost is how much text a call may read or make for one unit of cost. With maxCost an
	// evaluation makes about 19 MB.
	bytesPerCost = 64
	// maxPrecision bounds the digits that format writes after the decimal point.
	maxPrecision = 100
)

// size is how large a value is: its texts in bytes, and its values including nested ones.
type size struct{ bytes, values int }

// add adds a value. It stops when the size exceeds maxText or maxCompared, because a value may be
// far larger than its memory. It reports whether it has not.
func (s *size) add(v ref.Val) bool {
	s.values++
	s.addText(v)
	switch v := v.(type) {
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			if !s.add(key) || !s.add(v.Get(key)) {
				return false
			}
		}
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if !s.add(it.Next()) {
				return false
			}
		}
	}
	return s.bytes <= maxText && s.values <= maxCompared
}

// boundedStrings returns CEL's string extension, with functions in place of those whose result can
// be many times longer than their arguments. The version is fixed, so that a new version of cel-go
// does not change the meaning of a definition.
func boundedStrings() cel.EnvOption {
	return cel.Lib(stringLibrary{})
}

// stringLibrary is the library of boundedStrings. The later definition of an overload replaces the
// earlier one.
type stringLibrary struct{}

// CompileOptions implements cel.Library.
func (stringLibrary) CompileOptions() []cel.EnvOption {
	text, list := cel.StringType, cel.ListType(cel.StringType)
	return []cel.EnvOption{
		ext.Strings(ext.StringsVersion(4)),
		cel.Function("replace",
			cel.MemberOverload("string_replace_string_string", []*cel.Type{text, text, text}, text, cel.FunctionBinding(replace)),
			cel.MemberOverload("string_replace_string_string_int", []*cel.Type{text, text, text, cel.IntType}, text, cel.FunctionBinding(replace))),
		cel.Function("join",
			cel.MemberOverload("list_join", []*cel.Type{list}, text, cel.FunctionBinding(join)),
			cel.MemberOverload("list_join_string", []*cel.Type{list, text}, text, cel.FunctionBinding(join))),
		cel.Function("format",
			cel.MemberOverload("string_format", []*cel.Type{text, cel.ListType(cel.DynType)}, text, cel.FunctionBinding(format))),
	}
}

// ProgramOptions implements cel.Library.
func (stringLibrary) ProgramOptions() []cel.ProgramOption { return nil }

// replace implements text.replace(old, new) and text.replace(old, new, limit).
func replace(args ...ref.Val) ref.Val {
	text, old, with := string(args[0].(types.String)), string(args[1].(types.String)), string(args[2].(types.String))
	limit := -1
	if len(args) == 4 {
		limit = int(min(max(args[3].(types.Int), -1), maxText))
	}
	count := strings.Count(text, old)
	if old == "" {
		count = utf8.RuneCountInString(text) + 1
	}
	if limit >= 0 {
		count = min(count, limit)
	}
	if len(text)+count*(len(with)-len(old)) > maxText {
		return tooLong()
	}
	return types.String(strings.Replace(text, old, with, limit))
}

// join implements list.join() and list.join(separator).
func join(args ...ref.Val) ref.Val {
	separator := ""
	if len(args) == 2 {
		separator = string(args[1].(types.String))
	}
	var b strings.Builder
	list := args[0].(traits.Lister)
	for i := range list.Size().(types.Int) {
		entry, ok := list.Get(i).(types.String)
		if !ok {
			return types.NewErr("no such overload: join")
		}
		if b.Len()+len(separator)+len(entry) > maxText {
			return tooLong()
		}
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(string(entry))
	}
	return types.String(b.String())
}

// unboundedFormat returns the format function of CEL's string extension. It is found once.
var unboundedFormat = sync.OnceValue(func() functions.FunctionOp {
	env, err := cel.NewEnv(ext.Strings(ext.StringsVersion(4)))
	if err != nil {
		return nil
	}
	overloads, err := env.Functions()["format"].Bindings()
	if err != nil {
		return nil
	}
	at := slices.IndexFunc(overloads, func(o *functions.Overload) bool { return o.Operator == "string_format" })
	if at < 0 {
		return nil
	}
	return overloads[at].Function
})

// precision matches the precision of a verb of format.
var precision = regexp.MustCompile(`%\.(\d+)`)

// format implements text.format(list) with a bounded list and bounded precisions.
func format(args ...ref.Val) ref.Val {
	for _, digits := range precision.FindAllStringSubmatch(string(args[0].(types.String)), -1) {
		if n, err := strconv.Atoi(digits[1]); err != nil || n > maxPrecision {
			return types.NewErr("the precision is out of range")
		}
	}
	if !new(size).add(args[1]) {
		return tooLong()
	}
	return unboundedFormat()(args...)
}

// tooLong returns the error for a text that exceeds maxText.
func tooLong() ref.Val { return types.NewErr("the text is too long") }

// Bounds returns the options of a program that bound what an evaluation costs, in CEL's unit (about
// one operation), and the memory that it needs.
func Bounds(maxCost uint64) []cel.ProgramOption {
	return []cel.ProgramOption{
		cel.CostTracking(costs{}), cel.CostLimit(maxCost), cel.CustomDecorator(boundCall),
	}
}

// costs estimates the cost of calls by the texts and lists that they read and make.
type costs struct{}

// CallCost implements the estimator of package interpreter; nil = CEL's own estimate.
func (costs) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	var total size
	switch function {
	case operators.Equals, operators.NotEquals, operators.In:
		for _, a := range args {
			total.add(a)
		}
	case operators.Add:
		total.addFlat(result)
	case "charAt", "format", "indexOf", "join", "lastIndexOf", "lowerAscii", "replace", "reverse", "split", "strings.quote", "substring", "trim", "upperAscii":
		for _, a := range args {
			total.addFlat(a)
		}
		total.addFlat(result)
	default:
		return nil
	}
	cost := uint64(1 + total.values/8 + total.bytes/bytesPerCost)
	return &cost
}

// addText adds the bytes of a text; other values have none.
func (s *size) addText(v ref.Val) {
	switch v := v.(type) {
	case types.String:
		s.bytes += len(v)
	case types.Bytes:
		s.bytes += len(v)
	}
}

// addFlat adds a text, or the length of a list.
func (s *size) addFlat(v ref.Val) {
	s.addText(v)
	if list, ok := v.(traits.Lister); ok {
		s.values += int(list.Size().(types.Int))
	}
}

// boundCall makes comparisons and additions check the size of their operands first. CEL does not
// estimate the cost of an addition whose types are known only at run time.
func boundCall(i interpreter.Interpretable) (interpreter.Interpretable, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	switch call.Function() {
	case operators.Equals, operators.NotEquals, operators.In, operators.Add:
		return &boundedCall{call}, nil
	}
	return i, nil
}

// boundedCall is a call of ==, !=, in or + with bounded operands.
type boundedCall struct{ interpreter.InterpretableCall }

// Eval implements interpreter.Interpretable.
func (c *boundedCall) Eval(variables interpreter.Activation) ref.Val {
	left, right := c.Args()[0].Eval(variables), c.Args()[1].Eval(variables)
	for _, v := range []ref.Val{left, right} {
		if types.IsUnknownOrError(v) {
			return v
		}
	}
	if c.Function() == operators.Add {
		return add(left, right)
	}
	if !new(size).add(left) || !new(size).add(right) {
		return types.NewErr("a compared value is too large")
	}
	switch c.Function() {
	case operators.Equals:
		return types.Equal(left, right)
	case operators.NotEquals:
		return types.Bool(types.Equal(left, right) != types.True)
	}
	container, ok := right.(traits.Container)
	if !ok {
		return types.MaybeNoSuchOverloadErr(right)
	}
	return container.Contains(left)
}

// add implements the operator +. The sum of two lists shares their memory, but everything that
// reads it takes time.
func add(left, right ref.Val) ref.Val {
	adder, ok := left.(traits.Adder)
	if !ok {
		return types.MaybeNoSuchOverloadErr(left)
	}
	var sum size
	sum.addFlat(left)
	if sum.addFlat(right); sum.bytes > maxText || sum.values > maxValues {
		return tooLong()
	}
	return adder.Add(right)
}
