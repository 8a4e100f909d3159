package exportdb

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/store"
)

// keyForm converts a key of a row to parameters of a statement. The empty key is the one before the first row if first
// is set, else the one behind the last row.
type keyForm func(key string, first bool) ([]any, error)

// beyond is a token id that is larger than any other, as a numeric.
const beyond = "1e78"

// tokenKeys is the form of keys of sets with a row for each agent: its token id.
func tokenKeys(key string, first bool) ([]any, error) {
	switch {
	case key == "" && first:
		return []any{"-1"}, nil
	case key == "":
		return []any{beyond}, nil
	}
	id, err := repute.ParseTokenID(key)
	return []any{id.Dec()}, err
}

// ratingKeys is the form of token id, client and index.
func ratingKeys(key string, first bool) ([]any, error) {
	switch {
	case key == "" && first:
		return []any{"-1", []byte{}, int64(0)}, nil
	case key == "":
		return []any{beyond, []byte{}, int64(0)}, nil
	}
	parts := strings.Split(key, "/")
	if len(parts) != 3 {
		return nil, fmt.Errorf("no key of a rating: %w", repute.ErrInvalid)
	}
	id, err := repute.ParseTokenID(parts[0])
	if err != nil {
		return nil, err
	}
	client, err := repute.ParseAddress("client", parts[1])
	if err != nil {
		return nil, err
	}
	index, err := strconv.ParseInt(parts[2], 10, 64)
	return []any{id.Dec(), client[:], index}, err
}

// logKeys is the form of block and log index.
func logKeys(key string, first bool) ([]any, error) {
	switch {
	case key == "" && first:
		return []any{int64(-1), int64(-1)}, nil
	case key == "":
		return []any{int64(math.MaxInt64), int64(0)}, nil
	}
	block, index, _ := strings.Cut(key, "-")
	b, err := strconv.ParseInt(block, 10, 64)
	if err != nil {
		return nil, err
	}
	i, err := strconv.ParseInt(index, 10, 32)
	return []any{b, i}, err
}

// changeKeys is the form of cursors of the change feed.
func changeKeys(key string, first bool) ([]any, error) {
	if key == "" && !first {
		return []any{strconv.FormatUint(math.MaxUint64, 10), int64(0)}, nil
	}
	var at store.ChangeCursor
	if key != "" {
		var err error
		if at, err = store.ParseChangeCursor(key); err != nil {
			return nil, err
		}
	}
	return []any{strconv.FormatUint(at.XID, 10), at.Seq}, nil
}

// hexOf returns bytes as text, nil for none.
func hexOf(b []byte) *string {
	if len(b) == 0 {
		return nil
	}
	s := hexutil.Encode(b)
	return &s
}
