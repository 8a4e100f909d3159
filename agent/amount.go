package agent

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"repute"
	"repute/x402"
)

// Units converts a decimal amount of whole units to the smallest unit, exactly.
// repute.ErrInvalid where it is none.
func Units(text string, decimals uint8) (a x402.Amount, err error) {
	whole, fraction, _ := strings.Cut(text, ".")
	digits := whole + fraction
	if whole == "" || len(digits) > 78 || strings.Trim(digits, "0123456789") != "" || len(fraction) > int(decimals) {
		return a, repute.Invalid("amount", fmt.Sprintf("%.80q is no amount", text),
			fmt.Sprintf("a decimal number with at most %d digits after the point", decimals))
	}
	n, ok := new(big.Int).SetString(digits+strings.Repeat("0", int(decimals)-len(fraction)), 10)
	if ok {
		a, err = x402.AmountOf(n)
	}
	if !ok || err != nil {
		return a, repute.Invalid("amount", fmt.Sprintf("%.80q is too large", text), "below 2^256 of the smallest unit")
	}
	return a, nil
}

// pointed returns the text or number that a JSON Pointer names in a value.
func pointed(raw json.RawMessage, pointer string) (string, error) {
	var at any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if err := d.Decode(&at); err != nil {
		return "", err
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch v := at.(type) {
		case map[string]any:
			at = v[unescape.Replace(part)]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return "", fmt.Errorf("output has nothing at %s", pointer)
			}
			at = v[i]
		default:
			return "", fmt.Errorf("output has nothing at %s", pointer)
		}
	}
	switch v := at.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	}
	return "", fmt.Errorf("output has no amount at %s", pointer)
}
