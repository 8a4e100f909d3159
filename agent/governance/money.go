package governance

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
)

// Price is what a request costs.
type Price struct {
	Amount   string // decimal, in units of the currency
	Currency string
	Minor    string // the amount in minor units, for custom rules; empty where not known
}

// Thresholds are amounts, each of another currency. Their JSON form is a string, "1 ETH", or a list.
type Thresholds []Threshold

// Threshold is an amount of one currency.
type Threshold struct {
	Amount   *big.Rat
	Currency string
}

var amountPattern = regexp.MustCompile(`^[0-9]{1,78}(\.[0-9]{1,36})?$`)
var currencyPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9.]{0,15}$`)

// UnmarshalJSON reads a string or a list of strings.
func (t *Thresholds) UnmarshalJSON(raw []byte) error {
	var texts []string
	if raw = bytes.TrimSpace(raw); raw[0] == '[' {
		if err := jsonv2.Unmarshal(raw, &texts); err != nil {
			return errThreshold
		}
	} else {
		var one string
		if err := jsonv2.Unmarshal(raw, &one); err != nil {
			return errThreshold
		}
		texts = []string{one}
	}
	*t = Thresholds{}
	for _, text := range texts {
		threshold, err := parseThreshold(text)
		if err != nil {
			return err
		}
		if t.find(threshold.Currency) != nil {
			return fmt.Errorf("%s has two thresholds", threshold.Currency)
		}
		*t = append(*t, threshold)
	}
	return nil
}

var errThreshold = errors.New(`is no threshold: "1 ETH", or a list of such texts, one for each currency`)

// parseThreshold reads "1 ETH".
func parseThreshold(text string) (t Threshold, err error) {
	amount, currency, ok := strings.Cut(text, " ")
	if !ok || !currencyPattern.MatchString(currency) {
		return t, errThreshold
	}
	t.Currency = currency
	t.Amount, err = parseAmount(amount)
	return t, err
}

// parseAmount reads a decimal amount, 0 or more.
func parseAmount(text string) (*big.Rat, error) {
	if !amountPattern.MatchString(text) {
		return nil, errThreshold
	}
	amount, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, errThreshold
	}
	return amount, nil
}

// find returns the threshold of a currency, or nil.
func (t Thresholds) find(currency string) *Threshold {
	i := slices.IndexFunc(t, func(x Threshold) bool { return strings.EqualFold(x.Currency, currency) })
	if i < 0 {
		return nil
	}
	return &t[i]
}

// exceeded says why a price needs validation, "" when it does not. A price that cannot be compared
// needs it.
func (t Thresholds) exceeded(p *Price) (why, have, need string) {
	if len(t) == 0 || p == nil {
		return "", "", ""
	}
	have = p.Amount + " " + p.Currency
	threshold := t.find(p.Currency)
	if threshold == nil {
		return "no threshold is in the currency of the price", have, ""
	}
	need = strings.TrimSuffix(strings.TrimRight(threshold.Amount.FloatString(36), "0"), ".") + " " + threshold.Currency
	amount, err := parseAmount(p.Amount)
	switch {
	case err != nil:
		return "the price is no decimal amount", have, need
	case amount.Cmp(threshold.Amount) > 0:
		return "the price is above the threshold", have, need
	}
	return "", "", ""
}
