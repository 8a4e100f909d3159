package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"repute"
	"repute/internal/rpctest"
)

const oneLog = `{"address":"0x8004A169FB4a3325136EB29fA0ceB6D2e539a432","topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",` +
	`"0x0000000000000000000000000000000000000000000000000000000000000000","0x00000000000000000000000000000000000000000000000000000000000000aa",` +
	`"0x0000000000000000000000000000000000000000000000000000000000000007"],"data":"0x","transactionHash":` +
	`"0x132c8ea538e8210a3058dbbcff6f901e2ff7a8204d5c30db19d15cceeb4db791",`

const hexLog = oneLog +
	`"blockNumber":"0x10","logIndex":"0x2","transactionIndex":"0x1","blockTimestamp":"0x65","removed":false,` +
	`"blockHash":"0x199187c05300ee04a963782f4612f17bdd0519ffc05a905ede0524db16e331c8"}`

func TestReadLogsForms(t *testing.T) {
	t.Parallel()
	decimal := oneLog + `"blockNumber":16,"logIndex":"2"}`
	snake := strings.NewReplacer("transactionHash", "transaction_hash", "blockNumber", "block_number", "logIndex",
		"log_index").Replace(decimal)
	explorer := oneLog +
		`"blockNumber":"0x10","logIndex":"0x2","timeStamp":"0x65","transactionIndex":"0x","gasPrice":"0x1"}`
	tests := map[string]struct {
		in   string
		logs int
	}{
		"array":    {"[" + hexLog + "," + decimal + "]", 2},
		"lines":    {hexLog + "\n" + decimal + "\n\n" + snake + "\n", 3},
		"envelope": {`{"jsonrpc":"2.0","id":1,"result":[` + hexLog + `]}`, 1},
		"batch": {`[{"id":1,"result":[` + hexLog + `]},{"id":2,"result":[]},{"id":3,"error":null,"result":[` +
			hexLog + `]}]`, 2},
		"receipts": {`{"result":[{"blockNumber":"0x10","transactionHash":"0x1","logs":[` + hexLog +
			`],"logsBloom":"0x00"}]}`, 1},
		"object of arrays": {`{"source":"x","registeredLogs":[` + hexLog + `],"deep":{"data":[` + decimal + `]}}`, 2},
		"explorer":         {`{"status":"1","message":"OK","result":[` + explorer + `]}`, 1},
		"nothing":          {`[]`, 0},
		"empty":            {``, 0},
		"carriage return":  {"[" + hexLog + "]\r\n", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec, err := readLogs(strings.NewReader(tt.in), maxInput, maxLogs)
			if err != nil || len(rec.Logs) != tt.logs {
				t.Fatalf("%d logs, %v; want %d", len(rec.Logs), err, tt.logs)
			}
			for _, l := range rec.Logs {
				if l.BlockNumber != 16 || l.Index != 2 || len(l.Topics) != 4 || l.Topics[3].Big().Int64() != 7 {
					t.Errorf("read as %+v", l.Log)
				}
			}
		})
	}
}

func TestReadLogsRefuses(t *testing.T) {
	t.Parallel()
	swap := func(old, with string) string { return "[" + strings.Replace(hexLog, old, with, 1) + "]" }
	tests := map[string]struct{ in, want string }{
		"cut":             {"[" + hexLog[:200], "line 1, "},
		"cut after a log": {"[\n" + hexLog + ",\n", "line 2, "},
		"no JSON":         {hexLog + "\n<html>", "line 2, "},
		"stray bracket":   {hexLog + "\n]", "line 2, "},
		"removed":         {swap(`"removed":false`, `"removed":true`), "removed"},
		"no block":        {swap(`"blockNumber"`, `"number"`), "blockNumber: missing"},
		"no index":        {swap(`"logIndex"`, `"i"`), "logIndex: missing"},
		"bad quantity":    {swap(`"0x10"`, `"0xzz"`), "blockNumber"},
		"negative":        {swap(`"0x10"`, `-1`), "blockNumber"},
		"fraction":        {swap(`"0x10"`, `1.5`), "blockNumber"},
		"missing":         {swap(`"transactionHash"`, `"tx"`), "transactionHash: missing"},
		"own spelling":    {swap(`"blockNumber":"0x10"`, `"block_number":"x"`), "block_number: "},
		"last int64":      {swap(`"0x10"`, `"0x7fffffffffffffff"`), "line 1, byte "},
		"2^53":            {swap(`"0x10"`, `9007199254740992`), "blockNumber: 9007199254740992 is out of range"},
		"huge log index":  {swap(`"0x2"`, `"0x80000000"`), "logIndex: 2147483648 is out of range"},
		"endless time":    {swap(`"0x65"`, `"0xffffffffffffffff"`), "blockTimestamp: 18446744073709551615 is out"},
		"milliseconds": {swap(`"blockTimestamp":"0x65"`, `"timestamp":1763700000000`),
			"timestamp: 1763700000000 is out"},
		"range to 2^63": {"\n" + `{"blockRange":{"from":5,"to":9223372036854775807}}`, "line 2, "},
		"range to 2^64": {`{"block_range":{"from":0,"to":18446744073709551615}}`,
			"block_range: 18446744073709551615 is beyond"},
		"range beyond that": {`{"blockRange":{"from":0,"to":18446744073709551616}}`, "is no range"},
		"huge":              {swap(`"0x10"`, `"0xffffffffffffffff"`), "out of range"},
		"short address":     {swap("0x8004A169", "0x"), "address: 16 bytes"},
		"odd data":          {swap(`"data":"0x"`, `"data":"0x1"`), "data"},
		"no data":           {swap(`"data":"0x"`, `"data":null`), "data: missing"},
		"short topic":       {swap("0x0000", "0x"), "topics"},
		"topics no list":    {`{"topics":"0x"}`, "topics"},
		"answer is error": {`{"error":{"code":-32005,"message":"query returned more than 10000 results"}}`,
			"more than 10000"},
		"result is null":    {"[\n" + `{"id":1,"result":null}]`, "line 2, "},
		"too deep":          {strings.Repeat("[", 100), "deep"},
		"other chain after": {`[{"chainId":1,"logs":[]},{"chainId":2,"logs":[]}]`, "chainId 2 after 1"},
		"range upside down": {`{"blockRange":{"from":9,"to":2}}`, "blockRange"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec, err := readLogs(strings.NewReader(tt.in), maxInput, maxLogs)
			if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), tt.want) || len(rec.Logs) != 0 {
				t.Errorf("%d logs, %v; want an error with %q", len(rec.Logs), err, tt.want)
			}
		})
	}
}

func TestReadLogsBounds(t *testing.T) {
	t.Parallel()
	in := "[" + hexLog + "," + hexLog + "]"
	if _, err := readLogs(strings.NewReader(in), int64(len(in))-1, maxLogs); err == nil {
		t.Error("input above the limit was read")
	}
	if _, err := readLogs(strings.NewReader(in), maxInput, 1); err == nil {
		t.Error("more logs than allowed were read")
	}
	if _, err := readLogs(strings.NewReader(in), int64(len(in))+1, 2); err != nil {
		t.Error(err)
	}
}

// What a node answers must come back the same through a file.
func TestReadLogsRoundTrip(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	b := c.Mine(c.Register(3, rpctest.Account(1), "ipfs://x"), c.Feedback(3, rpctest.Account(2), 1, -5, "t"))
	want := b.Logs()
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := readLogs(strings.NewReader(string(raw)), maxInput, maxLogs)
	if err != nil || len(rec.Logs) != len(want) {
		t.Fatalf("%d logs, %v", len(rec.Logs), err)
	}
	for i, l := range rec.Logs {
		if fmt.Sprintf("%+v", l.Log) != fmt.Sprintf("%+v", want[i]) {
			t.Errorf("log %d: %+v, want %+v", i, l.Log, want[i])
		}
	}
}

func FuzzReadLogs(f *testing.F) {
	f.Add("[" + hexLog + "]")
	f.Add(`{"id":1,"result":[` + hexLog + `]}`)
	f.Add(`{"blockRange":{"from":1,"to":"0x2"},"logs":[]}`)
	f.Fuzz(func(t *testing.T, in string) {
		rec, err := readLogs(strings.NewReader(in), 1<<20, maxLogs)
		if err != nil && len(rec.Logs) > 0 {
			t.Error("logs beside an error")
		}
		for _, l := range rec.Logs {
			if len(l.Topics) > 4 || l.Line < 1 {
				t.Errorf("log %+v", l)
			}
		}
	})
}

// Damaged recordings must give an error or whole logs, never a panic. Go's own
// fuzzing is slow in a binary of this size, so that this goes further.
func TestReadLogsDamaged(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	whole := []string{"[" + hexLog + "," + hexLog + "]", `{"id":1,"result":[` + hexLog + `]}`,
		`{"blockRange":{"from":1,"to":"0x2"},"logs":[]}`}
	for range 20_000 {
		b := []byte(whole[rnd.IntN(len(whole))])
		for range 1 + rnd.IntN(5) {
			switch i := rnd.IntN(len(b)); rnd.IntN(3) {
			case 0:
				b[i] = `{}[]",:0x1n`[rnd.IntN(11)]
			case 1:
				b = append(b[:i:i], b[i+1:]...)
			default:
				b = b[:i+1]
			}
			b = append(b, ' ')
		}
		rec, err := readLogs(bytes.NewReader(b), maxInput, maxLogs)
		if err != nil && (len(rec.Logs) > 0 || !errors.Is(err, repute.ErrInvalid)) {
			t.Fatalf("%q: %d logs, %v", b, len(rec.Logs), err)
		}
	}
}
