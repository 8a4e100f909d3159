package manifest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/resolver"
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

// corpus are the documents of one set of real ones.
func corpus(t *testing.T, set string) []json.RawMessage {
	t.Helper()
	var docs []json.RawMessage
	switch set {
	case "chain":
		return onChain(t)
	case "inline":
		var rows []struct{ Registration json.RawMessage }
		if err := json.Unmarshal(testData(t, "registration/mainnet-registrations-decoded.json"), &rows); err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if len(row.Registration) > 0 && string(row.Registration) != "null" {
				docs = append(docs, row.Registration)
			}
		}
		return docs
	}
	return listed(t)
}

// listed are files of agents of Ethereum mainnet.
func listed(t *testing.T) []json.RawMessage {
	t.Helper()
	var docs []json.RawMessage
	lines := bufio.NewScanner(bytes.NewReader(testData(t, "erc8004/registration-files-sample.jsonl")))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var row struct{ Document json.RawMessage }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		docs = append(docs, row.Document)
	}
	return docs
}

// onChain are the documents that stand in the URIs of real logs, as bytes.
func onChain(t *testing.T) []json.RawMessage {
	t.Helper()
	type entry struct{ Data hexutil.Bytes }
	var file struct{ RegisteredLogs, URIUpdatedLogs []entry }
	if err := json.Unmarshal(testData(t, "erc8004/flowmcp-mainnet-logs/mainnet-event-logs.json"), &file); err != nil {
		t.Fatal(err)
	}
	client, err := resolver.New(resolver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var docs []json.RawMessage
	for _, l := range slices.Concat(file.RegisteredLogs, file.URIUpdatedLogs) {
		// One string: its offset, its length, its bytes.
		uri := string(l.Data[64 : 64+binary.BigEndian.Uint64(l.Data[56:64])])
		if kind := resolver.Classify(uri).Kind; kind != resolver.KindData && kind != resolver.KindJSON {
			continue
		}
		doc, err := client.Fetch(t.Context(), uri)
		if err != nil {
			t.Errorf("%.80s: %v", uri, err)
		}
		docs = append(docs, doc.Bytes)
	}
	return docs
}

// Documents that have each problem, out of 980 of Ethereum mainnet, 98 that another
// reader found in data: URIs on chain, and those that ours finds there. testdata holds the counts; run with -update
// after a look.
func TestRealDocuments(t *testing.T) {
	for _, set := range []string{"registrations", "inline", "chain"} {
		counts, kinds := tally{}, tally{}
		services, links, wallets, domains := 0, 0, 0, 0
		for _, doc := range corpus(t, set) {
			reg, problems := Parse(doc)
			counts.add(problems)
			services, links = services+len(reg.Services), links+len(reg.Registrations)
			wallets, domains = wallets+len(reg.Wallets()), domains+len(Domains(reg))
			kinds[string(Detect(doc))]++
			_, _ = ParseFeedback(doc)
			_, _ = ParseCard(doc)
		}
		golden(t, set+".txt", fmt.Sprintf("%s\n\n%s\n\n%d services, %d links, %d wallets, %d domains\n", counts, kinds,
			services, links, wallets, domains))
	}
}

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s (%v): got\n%s", path, err, got)
	}
}

func TestRealExample(t *testing.T) {
	reg, problems := Parse(testData(t, "erc8004/agent0-subgraph-config/example_registration_file.json"))
	want := []string{CodeLegacyEndpoints + "/endpoints", CodeAlias + "/supportedTrusts",
		CodeTemplate + "/endpoints/0/endpoint", CodeTemplate + "/endpoints/1/endpoint", CodeTemplate + "/image",
		CodeChecksum + "/endpoints/5/endpoint", CodeOASFUnknown + "/endpoints/2/domains",
		CodeOASFUnknown + "/endpoints/2/domains",
		CodeOASFUnknown + "/endpoints/2/skills", CodeOASFUnknown + "/endpoints/2/skills",
		CodeOASFUnknown + "/endpoints/2/skills"}
	if got := codesOf(problems); !slices.Equal(got, want) || len(reg.Services) != 6 ||
		len(reg.Services[1].Skills) != 3 {
		t.Errorf("problems %v, services %+v", got, reg.Services)
	}
}

// The names that are checked against are those of the published taxonomies.
func TestOASFNamesAreThePublishedOnes(t *testing.T) {
	skills, domains := map[string]bool{}, map[string]bool{}
	for _, release := range []string{"v0.7.8", "v0.8.7", "v1.0.4", "v1.1.1"} {
		var taxonomy struct {
			Skills, Domains []struct{ Name string }
		}
		if err := json.Unmarshal(testData(t, "oasf/taxonomy-"+release+".json"), &taxonomy); err != nil {
			t.Fatal(err)
		}
		for _, c := range taxonomy.Skills {
			skills[c.Name] = true
		}
		for _, c := range taxonomy.Domains {
			domains[c.Name] = true
		}
	}
	if !maps.Equal(skills, oasfSkills()) || !maps.Equal(domains, oasfDomains()) {
		t.Error("oasf_skills.txt or oasf_domains.txt differs from the taxonomies")
	}
}
