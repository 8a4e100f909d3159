package transaction

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
)

// Placeholder is a value of a call of the dry run that the agent cannot know before Execute,
// with its bounds. The call of the dry run has a sample of it, which is within the bounds.
type Placeholder struct {
	// Path is the argument's position from 0, with dots below tuples and lists, or "value" or
	// "amount" for those of the transaction.
	Path string `json:"path"`
	Type string `json:"type"` // of the contract ABI
	// Min and Max bound integers, decimal. Both are needed for them.
	Min string `json:"min,omitempty"`
	Max string `json:"max,omitempty"`
	// OneOf are the addresses that may stand there. At least one is needed for addresses.
	OneOf []common.Address `json:"oneOf,omitempty"`
	// MaxLength bounds bytes and strings, in bytes. It is needed for them.
	MaxLength int `json:"maxLength,omitempty"`
}

// Bounds of the placeholders of one call. Every combination of their extremes is judged.
const (
	maxPlaceholders = 16
	maxCombinations = 64
)

// The places of placeholders that are no arguments.
const (
	placeValue  = "value"
	placeAmount = "amount"
)

// Declared is a call of the dry run with what its placeholders stand for.
type Declared struct {
	Tx
	Listed    *contracts.Function // that an allow-list names; nil where none does
	function  *contracts.Function
	arguments []contracts.Argument // of the sample; nil without placeholders of arguments
	bounds    map[string]*Placeholder
	registry  bool      // it calls one of the ERC-8004 registries
	Leaves    []Outflow // the treasury, as the simulation of the dry run showed
}

// Declare checks a call of the dry run. listed is the function that an allow-list names for it,
// nil where none does; registry tells that it calls one of the ERC-8004 registries. The error is
// repute.ErrInvalid.
func Declare(tx Tx, listed *contracts.Function, registry bool, calls *contracts.CallDecoder) (*Declared, error) {
	d := &Declared{Tx: tx, Listed: listed, registry: registry, bounds: map[string]*Placeholder{}}
	if len(tx.Placeholders) > maxPlaceholders {
		return nil, repute.Invalid("placeholders", fmt.Sprintf("are %d", len(tx.Placeholders)),
			fmt.Sprintf("at most %d", maxPlaceholders))
	}
	ofArguments := false
	for i := range tx.Placeholders {
		p := &tx.Placeholders[i]
		if d.bounds[p.Path] != nil {
			return nil, repute.Invalid("placeholders", fmt.Sprintf("name %.40q twice", p.Path), "each path once")
		}
		d.bounds[p.Path] = p
		ofArguments = ofArguments || p.Path != placeValue && p.Path != placeAmount
	}
	if ofArguments {
		if err := d.decode(calls); err != nil {
			return nil, err
		}
	}
	for _, p := range d.bounds {
		if err := d.checkBounds(p); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// decode takes the sample apart: by the function that an allow-list names for the call, else
// by the one that is known for its selector, else by the one that the agent names.
func (d *Declared) decode(calls *contracts.CallDecoder) (err error) {
	if d.function = d.Listed; d.function == nil {
		d.function = calls.Known(d.Data)
	}
	if d.function == nil {
		if d.function, err = contracts.ParseFunction(d.Function); err != nil {
			return err
		}
	}
	arguments, err := d.function.Decode(d.Data)
	if err != nil {
		return repute.Invalid("placeholders", err.Error(), "data that function, which must be given, describes")
	}
	d.arguments = arguments.List()
	return nil
}

// checkBounds refuses a placeholder that is none of a value, has no bounds, or does not allow
// its own sample.
func (d *Declared) checkBounds(p *Placeholder) error {
	at := fmt.Sprintf("placeholders[%.40q]", p.Path)
	var sample string
	typeName := "uint256"
	switch p.Path {
	case placeValue:
		sample = cmp.Or(d.Value, "0")
	case placeAmount:
		sample = cmp.Or(d.Amount, "0")
	default:
		i := slices.IndexFunc(d.arguments, func(a contracts.Argument) bool { return a.Path == p.Path })
		if i < 0 || strings.HasSuffix(d.arguments[i].Type, "]") {
			return repute.Invalid(at, "is no argument of the function",
				"a position from 0, with dots below tuples and lists")
		}
		sample, typeName = d.arguments[i].Value, d.arguments[i].Type
	}
	if p.Type != typeName {
		return repute.Invalid(at, fmt.Sprintf("has type %.40q", p.Type), typeName)
	}
	if err := p.bounded(at); err != nil {
		return err
	}
	if !p.allows(sample) {
		return repute.Invalid(at, "does not allow the value that the dry run shows", "a value within the bounds")
	}
	return nil
}

// bounded refuses a placeholder without the bounds that its type needs.
func (p *Placeholder) bounded(at string) error {
	lowest, highest := contracts.Range(p.Type)
	switch {
	case lowest != nil:
		from, ok1 := decimal(p.Min)
		to, ok2 := decimal(p.Max)
		if !ok1 || !ok2 || from.Cmp(lowest) < 0 || to.Cmp(highest) > 0 || from.Cmp(to) > 0 {
			return repute.Invalid(at, "is an integer without bounds of its type", "min and max, decimal")
		}
	case p.Type == "address" && (len(p.OneOf) == 0 || len(p.OneOf) > maxPlaceholders):
		return repute.Invalid(at, fmt.Sprintf("has %d addresses in oneOf", len(p.OneOf)),
			fmt.Sprintf("1 to %d", maxPlaceholders))
	case (p.Type == "bytes" || p.Type == "string") && (p.MaxLength < 1 || p.MaxLength > maxData):
		return repute.Invalid(at, "has no bound of its length", fmt.Sprintf("maxLength of 1 to %d bytes", maxData))
	}
	return nil
}

// decimal reads an integer that is written in its one decimal form.
func decimal(s string) (*big.Int, bool) {
	if len(s) > 80 {
		return nil, false
	}
	n, ok := new(big.Int).SetString(s, 10)
	return n, ok && n.String() == s
}

// allows reports whether a value, in the form of contracts.Argument, is within the bounds.
func (p *Placeholder) allows(value string) bool {
	switch {
	case p.Type == "address":
		return slices.Contains(p.OneOf, common.HexToAddress(value))
	case p.Type == "bytes":
		return (len(value)-2)/2 <= p.MaxLength
	case p.Type == "string":
		return len(value) <= p.MaxLength
	case p.Type == "bool" || strings.HasPrefix(p.Type, "bytes"):
		return true
	}
	n, ok := decimal(value)
	from, _ := decimal(p.Min)
	to, _ := decimal(p.Max)
	return ok && n.Cmp(from) >= 0 && n.Cmp(to) <= 0
}

// Fits reports whether a transaction is the declared call, with every byte as it was shown or
// within the bounds of a placeholder.
func (d *Declared) Fits(tx *Tx) bool {
	if tx.ChainID != d.ChainID || tx.Target != d.Target || tokenIn(tx) != tokenIn(&d.Tx) || tx.Payee != d.Payee {
		return false
	}
	if !d.fitsAmount(placeValue, tx.Value, d.Value) || !d.fitsAmount(placeAmount, tx.Amount, d.Amount) {
		return false
	}
	if d.function == nil {
		return string(tx.Data) == string(d.Data)
	}
	sent, err := d.function.Decode(tx.Data)
	if err != nil {
		return false
	}
	return slices.EqualFunc(sent.List(), d.arguments, func(a, shown contracts.Argument) bool {
		if a.Path != shown.Path || a.Type != shown.Type {
			return false
		}
		if p := d.bounds[a.Path]; p != nil {
			return p.allows(a.Value)
		}
		return a.Value == shown.Value
	})
}

// fitsAmount reports whether an amount that is sent is the one of the dry run, or within the
// bounds that the plan declared for its place.
func (d *Declared) fitsAmount(place, sent, shown string) bool {
	a, err1 := ParseAmount(sent)
	b, err2 := ParseAmount(shown)
	if err1 != nil || err2 != nil {
		return false
	}
	if p := d.bounds[place]; p != nil {
		return p.allows(a.String())
	}
	return a.Cmp(b) == 0
}

// tokenIn is the token of a transfer, the zero address for the chain's coin.
func tokenIn(tx *Tx) common.Address {
	if tx.Token == nil {
		return common.Address{}
	}
	return *tx.Token
}

// extremes are the calls with every combination of the least and greatest integers and of the
// addresses that placeholders allow: whatever is sent is no worse than the worst of them. Of
// bytes and strings they have the sample. The error is repute.ErrInvalid.
func (d *Declared) extremes() ([]Tx, error) {
	out := []Tx{d.Tx}
	for i := range d.Placeholders {
		p := &d.Placeholders[i]
		choices := p.choices()
		if len(choices) == 0 {
			continue
		}
		if len(out)*len(choices) > maxCombinations {
			return nil, repute.Invalid("placeholders", fmt.Sprintf("have more than %d combinations", maxCombinations),
				"fewer integers and addresses that are open")
		}
		var next []Tx
		for _, tx := range out {
			for _, word := range choices {
				next = append(next, d.with(tx, p.Path, word))
			}
		}
		out = next
	}
	return out, nil
}

// choices are the words that a placeholder's extremes have; none where its type has none.
func (p *Placeholder) choices() (out []*big.Int) {
	for _, a := range p.OneOf {
		out = append(out, a.Big())
	}
	if lowest, _ := contracts.Range(p.Type); lowest == nil {
		return out
	}
	from, _ := decimal(p.Min)
	to, _ := decimal(p.Max)
	if from.Cmp(to) == 0 {
		return []*big.Int{to}
	}
	return []*big.Int{from, to}
}

// with is a call with another word in the place of one.
func (d *Declared) with(tx Tx, path string, word *big.Int) Tx {
	switch path {
	case placeValue:
		tx.Value = word.String()
		return tx
	case placeAmount:
		tx.Amount = word.String()
		return tx
	}
	tx.Data = slices.Clone(tx.Data)
	for _, a := range d.arguments {
		if a.Path == path {
			twos := new(big.Int).And(word, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1)))
			twos.FillBytes(tx.Data[a.At : a.At+32])
		}
	}
	return tx
}

// opaque reports whether a placeholder may hold calldata of which nothing is known. The
// registries call nothing with the bytes that they are given.
func (d *Declared) opaque() bool {
	return !d.registry &&
		slices.ContainsFunc(d.Placeholders, func(p Placeholder) bool { return p.Type == "bytes" && p.MaxLength >= 4 })
}

// Cases are a transaction, and the extremes of the call of the dry run that it is.
func (d *Declared) Cases(tx *Tx) ([]Tx, error) {
	if d == nil || len(d.Placeholders) == 0 {
		return []Tx{*tx}, nil
	}
	extremes, err := d.extremes()
	return append([]Tx{*tx}, extremes...), err
}

// Matching gives each transaction a declared call of its own that it fits. It is nil where
// that cannot be done, else the index of the declared call of each.
func Matching(list []*Declared, sent []*Tx) []int {
	by := make([]int, len(list)) // which transaction has a declared call, plus one
	var place func(i int, seen []bool) bool
	place = func(i int, seen []bool) bool {
		for j, d := range list {
			if seen[j] || !d.Fits(sent[i]) {
				continue
			}
			seen[j] = true
			if by[j] == 0 || place(by[j]-1, seen) {
				by[j] = i + 1
				return true
			}
		}
		return false
	}
	for i := range sent {
		if !place(i, make([]bool, len(list))) {
			return nil
		}
	}
	out := make([]int, len(sent))
	for j, i := range by {
		if i > 0 {
			out[i-1] = j
		}
	}
	return out
}
