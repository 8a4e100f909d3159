package contracts

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// DecodeEvent decodes a log into the name of its event and its arguments, as go-ethereum
// represents them. Of indexed strings and bytes there is only the hash. It is more lenient
// than DecodeCall: bytes after the arguments are ignored.
func DecodeEvent(of abi.ABI, l *types.Log) (name string, fields map[string]any, err error) {
	if len(l.Topics) == 0 {
		return "", nil, errors.New("log without topics")
	}
	event, err := of.EventByID(l.Topics[0])
	if err != nil {
		return "", nil, fmt.Errorf("log: %w", err)
	}
	fields = map[string]any{}
	if len(l.Data) > 0 || len(event.Inputs.NonIndexed()) > 0 {
		if err := event.Inputs.UnpackIntoMap(fields, l.Data); err != nil {
			return "", nil, fmt.Errorf("log of %s: %w", event.Name, err)
		}
	}
	var indexed abi.Arguments
	for _, a := range event.Inputs {
		if a.Indexed {
			indexed = append(indexed, a)
		}
	}
	if err := abi.ParseTopicsIntoMap(fields, indexed, l.Topics[1:]); err != nil {
		return "", nil, fmt.Errorf("log of %s: %w", event.Name, err)
	}
	return event.Name, fields, nil
}

// Plain is the JSON form of a decoded value: numbers are decimal text, bytes hex after 0x,
// addresses checksummed, tuples objects. The members of tuples have the names of the json tags
// that go-ethereum gives to the structs that it makes of them.
func Plain(v any) any {
	switch v := v.(type) {
	case *big.Int:
		return v.String()
	case common.Address:
		return v.Hex()
	case []byte:
		return hexutil.Encode(v)
	case bool, string:
		return v
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Array, reflect.Slice:
		return plainList(r)
	case reflect.Struct:
		out := map[string]any{}
		for i := range r.NumField() {
			out[r.Type().Field(i).Tag.Get("json")] = Plain(r.Field(i).Interface())
		}
		return out
	}
	return fmt.Sprint(v)
}

// plainList is the form of an array: bytesN is hex, other arrays are lists.
func plainList(r reflect.Value) any {
	if r.Type().Elem().Kind() == reflect.Uint8 && r.Kind() == reflect.Array {
		raw := make([]byte, r.Len())
		reflect.Copy(reflect.ValueOf(raw), r)
		return hexutil.Encode(raw)
	}
	out := make([]any, r.Len())
	for i := range out {
		out[i] = Plain(r.Index(i).Interface())
	}
	return out
}
