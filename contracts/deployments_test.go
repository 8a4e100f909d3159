package contracts

import (
	"encoding/csv"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// The addresses of the deployed registries, on mainnets and on testnets.
var (
	mainnetRegistries = [3]string{
		"0x8004A169FB4a3325136EB29fA0ceB6D2e539a432",
		"0x8004BAa17C55a88189AE136b182e5fdA19dE9b63",
		"0x8004Cc8439f36fd5F9F049D9fF86523Df6dAAB58",
	}
	testnetRegistries = [3]string{
		"0x8004A818BFB912233c491871b3d84c89A494BD9e",
		"0x8004B663056A597Dffe9eCcC1965A193B7388713",
		"0x8004Cb1BF31DAf7788923b405b754f57acEB4272",
	}
)

func TestDeployments(t *testing.T) {
	list := Deployments()
	if len(list) != 27 {
		t.Fatalf("%d networks", len(list))
	}
	names, ids := make(map[string]bool), make(map[uint64]bool)
	for _, d := range list {
		want := mainnetRegistries
		if d.Testnet {
			want = testnetRegistries
		}
		if got := [3]string{d.Identity.Hex(), d.Reputation.Hex(), d.Validation.Hex()}; got != want {
			t.Errorf("%s: registries %v", d.Name, got)
		}
		if d.Name == "" || d.Name != strings.ToLower(d.Name) || d.ChainID == 0 || d.StartBlock == 0 || d.Note == "" {
			t.Errorf("incomplete: %+v", d)
		}
		if names[d.Name] || ids[d.ChainID] {
			t.Errorf("%s is listed twice", d.Name)
		}
		names[d.Name], ids[d.ChainID] = true, true
	}
	if !slices.IsSortedFunc(list, func(a, b Deployment) int {
		if a.Testnet != b.Testnet {
			return map[bool]int{false: -1, true: 1}[a.Testnet]
		}
		return int(a.ChainID) - int(b.ChainID)
	}) {
		t.Error("not in order")
	}
}

// Addresses in the file carry the checksum of EIP-55.
func TestDeploymentsChecksums(t *testing.T) {
	for _, s := range regexp.MustCompile(`0x[0-9a-fA-F]+`).FindAllString(string(deploymentsJSON), -1) {
		if common.HexToAddress(s).Hex() != s {
			t.Errorf("%s", s)
		}
	}
}

func TestFindDeployment(t *testing.T) {
	for _, key := range []string{"base", "Base", "8453"} {
		d, err := FindDeployment(key)
		if err != nil || d.ChainID != 8453 || d.StartBlock != 41663783 || !d.StartVerified {
			t.Errorf("%s: %+v, %v", key, d, err)
		}
	}
	for _, key := range []string{"", "0", "world", "08453", "-1"} {
		if d, err := FindDeployment(key); !errors.Is(err, repute.ErrNotFound) {
			t.Errorf("%q: %+v, %v", key, d, err)
		}
	}
	d, err := FindDeployment("sepolia")
	if err != nil {
		t.Fatal(err)
	}
	c := d.Chain()
	if c.ID != 11155111 || c.Name != "sepolia" || c.Identity != d.Identity || c.Reputation != d.Reputation ||
		len(c.Validations) != 1 || c.Validations[0] != d.Validation || c.StartBlock != 9980000 {
		t.Errorf("%+v", c)
	}
}

// No start block lies above one that a source gives for the deployment.
func TestStartBlocks(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(string(dataFile(t, "erc8004/census-chains/chains.csv")))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		d, err := FindDeployment(row[1])
		if err != nil {
			t.Error(err)
			continue
		}
		block, err := strconv.ParseUint(row[2], 10, 64)
		if err != nil || d.StartBlock > block {
			t.Errorf("%s starts at %d, deployed at %s", d.Name, d.StartBlock, row[2])
		}
	}
}
