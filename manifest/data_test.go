package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"repute"
)

func raw(name, value string) map[string]json.RawMessage {
	return map[string]json.RawMessage{name: json.RawMessage(value)}
}

// testData reads a file of real documents, which are not part of this repository.
func testData(t *testing.T, name string) []byte {
	t.Helper()
	dir := os.Getenv("REPUTE_TEST_DATA")
	if dir == "" {
		dir = "../../shared/data"
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Skipf("test data absent: %v", err)
	}
	return b
}

// tally counts the documents that have each problem.
type tally map[string]int

func (c tally) add(problems []repute.Problem) {
	seen := map[string]bool{}
	for _, p := range problems {
		if !seen[p.Code] {
			seen[p.Code] = true
			c[p.Code]++
		}
	}
}

func (c tally) String() string {
	var lines []string
	for code, n := range c {
		lines = append(lines, fmt.Sprintf("%s %d", code, n))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestRealRegistrations(t *testing.T) {
	counts, services, links := tally{}, 0, 0
	lines := bufio.NewScanner(bytes.NewReader(testData(t, "erc8004/registration-files-sample.jsonl")))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var row struct{ Document json.RawMessage }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		reg, problems := Parse(row.Document)
		counts.add(problems)
		services, links = services+len(reg.Services), links+len(reg.Registrations)
	}
	got := fmt.Sprintf("%s\n%d services, %d links", counts, services, links)
	if got != realRegistrations {
		t.Errorf("got\n%s", got)
	}
}

func TestRealInlineDocuments(t *testing.T) {
	var rows []struct{ Registration json.RawMessage }
	if err := json.Unmarshal(testData(t, "registration/mainnet-registrations-decoded.json"), &rows); err != nil {
		t.Fatal(err)
	}
	counts := tally{}
	for _, row := range rows {
		if len(row.Registration) == 0 || string(row.Registration) == "null" {
			continue
		}
		_, problems := Parse(row.Registration)
		counts.add(problems)
	}
	if got := counts.String(); got != realInline {
		t.Errorf("got\n%s", got)
	}
}

func TestRealExample(t *testing.T) {
	reg, problems := Parse(testData(t, "erc8004/agent0-subgraph-config/example_registration_file.json"))
	want := []string{CodeLegacyEndpoints + "/endpoints", CodeAlias + "/supportedTrusts"}
	if got := codesOf(problems); !slices.Equal(got, want) || len(reg.Services) != 6 || len(reg.Services[1].Skills) != 3 {
		t.Errorf("problems %v, services %+v", got, reg.Services)
	}
}

// Documents that have each problem, out of 980 of Ethereum mainnet.
const realRegistrations = `EA506 1
IA527 903
IA534 907
IA540 1
IA543 945
WA031 10
WA520 1
WA521 66
WA523 8
WA524 296
WA525 3
WA526 3
WA528 4
WA531 1
WA533 1
WA541 2
149 services, 57 links`

// The same for 98 documents that stand in data: URIs on chain.
const realInline = `IA527 32
IA534 26
IA540 3
IA543 81
WA031 2
WA520 1
WA521 49
WA523 2
WA524 4
WA525 2
WA526 2
WA530 1
WA541 2
WA542 1`
