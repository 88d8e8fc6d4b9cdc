package budget

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/process/yamlfile"
)

// File is a YAML file of prices and of the budgets of tenants. It is read once and then not
// changed.
type File struct {
	// Currency is what all amounts are in, such as USD: three capital letters.
	Currency string  `yaml:"currency"`
	Prices   []Price `yaml:"prices"`
	// Tenants are the budgets of single tenants, by name. A tenant that is listed does not have the
	// general budget.
	Tenants map[string]Day `yaml:"tenants"`
}

// Day is the budget of a tenant for a day, from midnight to midnight UTC. Its own amounts are the
// hard ones; an amount of 0 = no bound. The zero Day is no budget.
type Day struct {
	Amounts `yaml:",inline"`
	// Soft are the amounts at which a run asks approvers whether it may continue. 0 = it does not
	// ask.
	Soft Amounts `yaml:"soft"`
}

// Amounts are amounts of a day: tokens, and money.
type Amounts struct {
	Tokens int64  `yaml:"tokensPerDay"`
	Cost   amount `yaml:"costPerDay"`
}

// amount is money with a YAML decoder.
type amount agents.Money

// UnmarshalYAML implements [yaml.Unmarshaler]: it accepts a decimal number or string.
func (a *amount) UnmarshalYAML(node *yaml.Node) error {
	m, err := agents.ParseMoney(node.Value)
	if err != nil {
		return fmt.Errorf("line %d: %.40q: %w", node.Line, node.Value, err)
	}
	*a = amount(m)
	return nil
}

// Bounds of a file: its bytes, and the number of its entries.
const (
	maxFile    = 1 << 20
	maxPrices  = 1_000
	maxTenants = 10_000
	// maxPrice bounds the price of a million tokens.
	maxPrice = 1e6
)

var currencyRule = regexp.MustCompile(`^[A-Z]{3}$`)

// Load reads a YAML file. The error has the file's name, and all mistakes of the file.
func Load(file string) (*File, error) {
	data, err := yamlfile.Read(file, maxFile)
	if err != nil {
		return nil, err
	}
	parsed, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return parsed, nil
}

// LoadIf is Load, but returns nil without an error if file is "".
func LoadIf(file string) (*File, error) {
	if file == "" {
		return nil, nil
	}
	return Load(file)
}

// parse decodes and checks a file. Unknown keys are errors. Empty data is an empty file, which
// check refuses because it has no currency.
func parse(data []byte) (*File, error) {
	var f File
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return &f, f.check()
}

// check returns all mistakes of the file, joined.
func (f *File) check() error {
	var problems []error
	if !currencyRule.MatchString(f.Currency) {
		problems = append(problems, fmt.Errorf("currency: %.20q must be three capital letters, such as USD", f.Currency))
	}
	if len(f.Prices) > maxPrices || len(f.Tenants) > maxTenants {
		problems = append(problems, fmt.Errorf("has more than %d prices or %d tenants", maxPrices, maxTenants))
	}
	for i, p := range f.Prices {
		if _, err := path.Match(p.Model, ""); err != nil || p.Model == "" {
			problems = append(problems, fmt.Errorf("prices[%d].model: %.80q must be provider/model, or a pattern with *", i, p.Model))
		}
		for _, n := range []float64{p.Input, p.Output, or(p.CachedInput, 0), or(p.CacheWrite, 0), or(p.Reasoning, 0)} {
			if !(n >= 0 && n <= maxPrice) { // not n < 0 || n > maxPrice, which NaN would pass
				problems = append(problems, fmt.Errorf("prices[%d]: %v must be 0 to %d, for a million tokens", i, n, int(maxPrice)))
			}
		}
	}
	for name, day := range f.Tenants {
		if name == "" || day.Tokens < 0 || day.Soft.Tokens < 0 {
			problems = append(problems, fmt.Errorf("tenants: the budget of %.80q must not be below zero, nor its name empty", name))
		}
		if err := day.Check(); err != nil {
			problems = append(problems, fmt.Errorf("tenants: %.80q: %w", name, err))
		}
	}
	return errors.Join(problems...)
}

// Price returns the first price of the file whose pattern matches the model. ok is false if none
// does, or if f is nil.
func (f *File) Price(model string) (Price, bool) {
	if f == nil {
		return Price{}, false
	}
	for _, p := range f.Prices {
		if ok, _ := path.Match(p.Model, model); ok { // Load has checked the pattern
			return p, true
		}
	}
	return Price{}, false
}
