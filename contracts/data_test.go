package contracts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"repute/contracts/bindings"
)

// dataFile reads a file of the recorded test data, or skips the test.
func dataFile(t testing.TB, name string) []byte {
	t.Helper()
	raw, ok := readData(t, name)
	if !ok {
		t.Skip("test data absent: set REPUTE_TEST_DATA to the folder that holds " + name)
	}
	return raw
}

func readData(t testing.TB, name string) ([]byte, bool) {
	t.Helper()
	dir := os.Getenv("REPUTE_TEST_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "data")
	}
	raw, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if os.IsNotExist(err) {
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw, true
}

// rawLog is the part of a recorded log that Decode reads.
type rawLog struct {
	Address common.Address `json:"address"`
	Topics  []common.Hash  `json:"topics"`
	Data    hexutil.Bytes  `json:"data"`
}

func (l rawLog) log() types.Log {
	return types.Log{Address: l.Address, Topics: l.Topics, Data: l.Data}
}

// recordings are the files with recorded logs.
var recordings = []string{
	"erc8004/official-bytecode-logs/transactions-with-raw-logs.json",
	"erc8004/flowmcp-mainnet-logs/mainnet-event-logs.json",
	"erc8004/misc-real-logs/base-sepolia-register-receipt-logs.json",
	"erc8004/misc-real-logs/base-mainnet-newfeedback-log.json",
}

// recordedLogs parses any of the recordings.
func recordedLogs(t testing.TB, raw []byte) (logs []types.Log) {
	t.Helper()
	var file struct {
		Logs           []rawLog `json:"logs"`
		RegisteredLogs []rawLog `json:"registeredLogs"`
		URIUpdatedLogs []rawLog `json:"uriUpdatedLogs"`
		Transactions   []struct {
			Logs []rawLog `json:"logs"`
		} `json:"transactions"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	all := append(append(file.Logs, file.RegisteredLogs...), file.URIUpdatedLogs...)
	for _, tx := range file.Transactions {
		all = append(all, tx.Logs...)
	}
	for _, l := range all {
		logs = append(logs, l.log())
	}
	if len(logs) == 0 {
		t.Fatal("no logs in the file")
	}
	return logs
}

// The deployed contracts' ABIs are contained in ours: same functions, events and
// errors, with the same arguments, results, indexing and mutability.
func TestABIsContainTheDeployedOnes(t *testing.T) {
	for file, meta := range map[string]*bind.MetaData{
		"IdentityRegistry.compiled-b9e466c.json": &bindings.IdentityRegistryMetaData,
		"ReputationRegistry.json":                &bindings.ReputationRegistryMetaData,
		"ValidationRegistry.json":                &bindings.ValidationRegistryMetaData,
	} {
		t.Run(meta.ID, func(t *testing.T) {
			want, got := deployedABI(t, file), parse(t, meta)
			compareFunctions(t, want, got)
			compareEvents(t, want, got)
			for name, e := range want.Errors {
				if g, ok := got.Errors[name]; !ok || g.ID != e.ID {
					t.Errorf("error %s is missing or differs", e.Sig)
				}
			}
		})
	}
}

// deployedABI reads a bare ABI or one inside an artifact.
func deployedABI(t *testing.T, file string) *abi.ABI {
	t.Helper()
	raw := dataFile(t, "erc8004/official-abis/"+file)
	var artifact struct {
		ABI json.RawMessage `json:"abi"`
	}
	if json.Unmarshal(raw, &artifact) == nil && artifact.ABI != nil {
		raw = artifact.ABI
	}
	parsed, err := abi.JSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return &parsed
}

func compareFunctions(t *testing.T, want, got *abi.ABI) {
	for _, m := range want.Methods {
		g, err := got.MethodById(m.ID)
		if err != nil {
			t.Errorf("function %s is missing", m.Sig)
			continue
		}
		// The text form has names, types, results and mutability, but also the
		// name the parser gave to an overload.
		if strings.TrimPrefix(g.String(), "function "+g.Name) != strings.TrimPrefix(m.String(), "function "+m.Name) {
			t.Errorf("%s\nwant %s", g, m)
		}
	}
	if len(got.Methods) != len(want.Methods) {
		t.Errorf("%d functions, want %d", len(got.Methods), len(want.Methods))
	}
}

func compareEvents(t *testing.T, want, got *abi.ABI) {
	for name, e := range want.Events {
		if g, ok := got.Events[name]; !ok || g.ID != e.ID || g.String() != e.String() {
			t.Errorf("event %s\nwant %s", g, e)
		}
	}
	if len(got.Events) != len(want.Events) {
		t.Errorf("%d events, want %d", len(got.Events), len(want.Events))
	}
}
