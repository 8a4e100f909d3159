package resolver

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mainnetURIs reads the agent URIs of real Registered and URIUpdated logs, which
// are not part of this repository.
func mainnetURIs(t *testing.T) []string {
	t.Helper()
	dir := os.Getenv("REPUTE_TEST_DATA")
	if dir == "" {
		dir = "../../shared/data"
	}
	b, err := os.ReadFile(filepath.Join(dir, "erc8004/flowmcp-mainnet-logs/mainnet-event-logs.json"))
	if err != nil {
		t.Skipf("test data absent: %v", err)
	}
	type log struct{ Data string }
	var file struct{ RegisteredLogs, URIUpdatedLogs []log }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	var uris []string
	for _, l := range slices.Concat(file.RegisteredLogs, file.URIUpdatedLogs) {
		data, err := hex.DecodeString(strings.TrimPrefix(l.Data, "0x"))
		if err != nil || len(data) < 64 {
			t.Fatalf("log data %.80s: %v", l.Data, err)
		}
		// One string: its offset, its length, its bytes.
		size := binary.BigEndian.Uint64(data[56:64])
		uris = append(uris, string(data[64:64+size]))
	}
	return uris
}

func TestRealURIs(t *testing.T) {
	counts := map[string]int{}
	for _, uri := range mainnetURIs(t) {
		ref := Classify(uri)
		counts[strings.TrimSpace(string(ref.Kind)+" "+string(ref.Reason))]++
		if ref.Kind != KindData {
			continue
		}
		b, _, err := decodeData(ref.URL, defaultMaxInlineBytes)
		switch {
		case err != nil:
			counts["data: "+string(reasonOf(err))]++
		case !json.Valid(b):
			counts["data: not JSON"]++
		default:
			counts["data: JSON"]++
		}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%s %d", name, counts[name]))
	}
	if got := strings.Join(lines, "\n"); got != realURIs {
		t.Errorf("got\n%s", got)
	}
}

// Forms of 158 URIs of Ethereum mainnet.
const realURIs = `data 95
data: JSON 95
empty empty 3
https 45
ipfs 9
json 3
unsupported bad_cid 1
unsupported not_a_uri 2`
