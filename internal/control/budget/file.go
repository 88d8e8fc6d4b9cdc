package budget

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/agents"
)

// File is what a file of prices and budgets says.
type File struct {
	// Currency is what all amounts are in, such as USD: three capital letters.
	Currency string  `yaml:"currency"`
	Prices   []Price `yaml:"prices"`
	// Tenants have budgets of their own, instead of the one that all have.
	Tenants map[string]Day `yaml:"tenants"`
}

// Day is what a tenant may use from midnight to midnight, UTC. 0 = as much as it likes.
type Day struct {
	Amounts `yaml:",inline"`
	// Soft is what it uses before each further run asks people whether it may go on. 0 = nobody is
	// asked.
	Soft Amounts `yaml:"soft"`
}

// Amounts are what is used in a day.
type Amounts struct {
	Tokens int64  `yaml:"tokensPerDay"`
	Cost   amount `yaml:"costPerDay"`
}

// amount is money as a file has it.
type amount agents.Money

func (a *amount) UnmarshalYAML(node *yaml.Node) error {
	m, err := agents.ParseMoney(node.Value)
	if err != nil {
		return fmt.Errorf("line %d: %.40q: %w", node.Line, node.Value, err)
	}
	*a = amount(m)
	return nil
}

// Bounds of a file.
const (
	maxFile    = 1 << 20
	maxPrices  = 1_000
	maxTenants = 10_000
	maxPrice   = 1e6 // for a million tokens
)

var currencyRule = regexp.MustCompile(`^[A-Z]{3}$`)

// Load reads a YAML file. What is wrong with it is told with its name, all at once.
func Load(file string) (*File, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	parsed, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return parsed, nil
}

// LoadIf is Load, and nil where no file is named.
func LoadIf(file string) (*File, error) {
	if file == "" {
		return nil, nil
	}
	return Load(file)
}

func parse(data []byte) (*File, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("is larger than %d bytes", maxFile)
	}
	var f File
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return &f, f.check()
}

func (f *File) check() error {
	var wrong []error
	if !currencyRule.MatchString(f.Currency) {
		wrong = append(wrong, fmt.Errorf("currency: %.20q must be three capital letters, such as USD", f.Currency))
	}
	if len(f.Prices) > maxPrices || len(f.Tenants) > maxTenants {
		wrong = append(wrong, fmt.Errorf("has more than %d prices or %d tenants", maxPrices, maxTenants))
	}
	for i, p := range f.Prices {
		if _, err := path.Match(p.Model, ""); err != nil || p.Model == "" {
			wrong = append(wrong, fmt.Errorf("prices[%d].model: %.80q must be provider/model, or a pattern with *", i, p.Model))
		}
		for _, n := range []float64{p.Input, p.Output, or(p.CachedInput, 0), or(p.CacheWrite, 0), or(p.Reasoning, 0)} {
			if !(n >= 0 && n <= maxPrice) { // NaN is neither
				wrong = append(wrong, fmt.Errorf("prices[%d]: %v must be 0 to %d, for a million tokens", i, n, int(maxPrice)))
			}
		}
	}
	for name, day := range f.Tenants {
		if name == "" || day.Tokens < 0 || day.Soft.Tokens < 0 {
			wrong = append(wrong, fmt.Errorf("tenants: the budget of %.80q must not be below zero, nor its name empty", name))
		}
		if err := day.Check(); err != nil {
			wrong = append(wrong, fmt.Errorf("tenants: %.80q: %w", name, err))
		}
	}
	return errors.Join(wrong...)
}

// Price finds the price of a model: the first that fits.
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
