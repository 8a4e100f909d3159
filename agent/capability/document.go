package capability

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"repute"
)

const (
	// maxValues bounds the values of a document: each costs some hundred bytes while it is
	// validated, and an error as much again.
	maxValues = 100_000
	// maxNumber bounds a number's digits and exponent: exact arithmetic on 1e1000000 takes
	// milliseconds for eight bytes of input.
	maxNumber = 400
)

// checkDocument refuses JSON that validators, hashes or other readers could read differently: what
// repute.CheckJSON refuses, members given twice, too many values, and integers that no double holds.
func checkDocument(field string, raw []byte) error {
	if err := repute.CheckJSON(field, raw); err != nil {
		return err
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	for values := 0; ; values++ {
		t, err := dec.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, jsontext.ErrDuplicateName):
			return repute.Invalid(at(field, dec), "a member is given twice", "each member once")
		case err != nil:
			return repute.Invalid(at(field, dec), "is no JSON", "any JSON value")
		case values > maxValues:
			return repute.Invalid(field, "has too many values", fmt.Sprintf("at most %d", maxValues))
		case t.Kind() == '0':
			if err := checkNumber(at(field, dec), t.String()); err != nil {
				return err
			}
		}
	}
}

// at names the place where a decoder is.
func at(field string, dec *jsontext.Decoder) string {
	return field + cut(string(dec.StackPointer()), maxPointer)
}

// checkNumber refuses numbers that canonical JSON would change: RFC 8785 writes doubles, so that two
// large integers could have one hash.
func checkNumber(field, text string) error {
	const hint = "a double; write integers beyond 2^53 as strings"
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	power, _ := strconv.Atoi(strings.TrimPrefix(exponent, "+")) // beyond an int it is the largest one
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case len(text) > maxNumber || power > maxNumber || power < -maxNumber || err != nil || math.IsInf(f, 0):
		return repute.Invalid(field, "the number is out of range", hint)
	case strings.ContainsAny(text, ".eE"):
		return nil
	case strconv.FormatFloat(f, 'f', -1, 64) != text && text != "-0":
		return repute.Invalid(field, "the integer has too many digits", hint)
	}
	return nil
}
