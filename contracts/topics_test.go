package contracts

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts/bindings"
)

func parse(t testing.TB, m *bind.MetaData) *abi.ABI {
	t.Helper()
	parsed, err := m.ParseABI()
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// The topics of the deployed registries.
var deployedTopics = []struct {
	kind  repute.EventKind
	topic string
}{
	{repute.KindTransfer, "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"},
	{repute.KindRegistered, "ca52e62c367d81bb2e328eb795f7c7ba24afb478408a26c0e201d155c449bc4a"},
	{repute.KindURIUpdated, "3a2c7fffc2cba7582c690e3b82c453ea02a308326a98a3ad7576c606336409fb"},
	{repute.KindMetadataSet, "2c149ed548c6d2993cd73efe187df6eccabe4538091b33adbd25fafdb8a1468b"},
	{repute.KindMetadataUpdate, "f8e1a15aba9398e019f0b49df1a4fde98ee17ae345cb5f6b5e2c27f5033e8ce7"},
	{repute.KindBatchMetadataUpdate, "6bd5c950a8d8df17f772f5af37cb3655737899cbf903264b9795592da439661c"},
	{repute.KindApproval, "8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"},
	{repute.KindApprovalForAll, "17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31"},
	{repute.KindUpgraded, "bc7cd75a20ee27fd9adebab32041f755214dbc6bffa90cc0225b39da2e5c2d3b"},
	{repute.KindInitialized, "c7f505b2f371ae2175ee4913f4499e1f2633a7b5936321eed1cdaeb6115181d2"},
	{repute.KindOwnershipTransferred, "8be0079c531659141344cd1fd0a4f28419497f9722a3daafe3b4186f6b6457e0"},
	{repute.KindEIP712DomainChanged, "0a6387c9ea3628b88a633bb4f3b151770f70085117a15f9bf3787cda53f13d31"},
	{repute.KindNewFeedback, "6a4a61743519c9d648a14e6493f47dbe3ff1aa29e7785c96c8326a205e58febc"},
	{repute.KindFeedbackRevoked, "25156fd3288212246d8b008d5921fde376c71ed14ac2e072a506eb06fde6d09d"},
	{repute.KindResponseAppended, "b1c6be0b5b8aef6539e2fac0fd131a2faa7b49edf8e505b5eb0ad487d56051d4"},
	{repute.KindValidationRequest, "530436c3634a98e1e626b0898be2f1e9980cc1bd2a78c07a0aba52d0a48a5059"},
	{repute.KindValidationResponse, "afddf629e874ccc3963b6a888c477bd464a6c8525024fc88759ea3b2326349ae"},
}

func TestTopics(t *testing.T) {
	if len(deployedTopics) != len(shapes) {
		t.Fatalf("%d topics for %d events", len(deployedTopics), len(shapes))
	}
	for i, s := range shapes {
		if s.kind != repute.EventKind(i+1) {
			t.Errorf("%s out of order", s.kind)
		}
	}
	for _, want := range deployedTopics {
		if got := Topic(want.kind); got != common.HexToHash(want.topic) {
			t.Errorf("%s: topic %s, want %s", want.kind, got, want.topic)
		}
		if got := Topics()[want.kind-1]; got != common.HexToHash(want.topic) {
			t.Errorf("%s: listed as %s", want.kind, got)
		}
	}
	if Topic(0) != (common.Hash{}) || Topic(99) != (common.Hash{}) {
		t.Error("unknown kinds have a topic")
	}
}

func TestLegacyTopics(t *testing.T) {
	want := []string{
		"54b3254e4cc01969e70376d20390cc2f6af90539d9adaa78a53ebcda17f78154",
		"744ec89483257dd170f417f1c3aef90840a2d763449395ba4f09e37f78a0c98b",
		"425311b4692766f8739eaeea31a86b5756c7c315d17abc22bc9e67628405d6a7",
		"801d7d4264128f6f43835850f1fabb91902c3543c3738f1f62fbf7e9fd80531d",
		"31f01d2aa5cdbe0619011211e9ffc39d678bc82e46d60c35953396ae61e896d8",
		"413f2d30fdbc0b49e55537333a7c6287556f671f40c7e2dc00fc7ca1ced350da",
		"b41beef75d9f8d55b985319b459e96f82453580af381391f1ad531eb8f8b5a3a",
		"2dbec70f51f7b79cc6a9d4ea913abc7d680b523e0763e3ad622612950757609c",
		"f224d3d5ad74301be48e4d51ca5f1b24c7946875887327585becc59165297dcf",
	}
	got := LegacyTopics()
	if len(got) != len(want) {
		t.Fatalf("%d legacy topics, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != common.HexToHash(want[i]) {
			t.Errorf("%s: topic %s, want %s", legacySignatures[i], got[i], want[i])
		}
		if _, current := shapeOf[got[i]]; current {
			t.Errorf("%s is also current", legacySignatures[i])
		}
	}
}

// Every list asks for exactly what the ABI of its registry declares.
func TestRegistryTopics(t *testing.T) {
	for name, c := range map[string]struct {
		meta   *bind.MetaData
		topics []common.Hash
	}{
		"identity":   {&bindings.IdentityRegistryMetaData, identityTopics()},
		"reputation": {&bindings.ReputationRegistryMetaData, reputationTopics()},
		"validation": {&bindings.ValidationRegistryMetaData, ValidationTopics()},
	} {
		parsed := parse(t, c.meta)
		if len(parsed.Events) != len(c.topics) {
			t.Errorf("%s: %d topics for %d events", name, len(c.topics), len(parsed.Events))
		}
		for _, topic := range c.topics {
			if _, err := parsed.EventByID(topic); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestKnownHashes(t *testing.T) {
	if want := "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"; emptyHash.Hex() != want {
		t.Errorf("hash of the empty string: %s", emptyHash)
	}
	if want := "0x2ac6109326e720d1435c0db66f7e35eda7839f52b6f1f5520a60788e132b4e39"; walletKeyHash.Hex() != want {
		t.Errorf("hash of the wallet key: %s", walletKeyHash)
	}
}

// The selectors and signatures of the deployed registries' functions.
var deployedSelectors = map[*bind.MetaData]map[string]string{
	&bindings.IdentityRegistryMetaData: {
		"register()":                                    "1aa3a008",
		"register(string)":                              "f2c298be",
		"register(string,(string,bytes)[])":             "8ea42286",
		"setAgentURI(uint256,string)":                   "0af28bd3",
		"getMetadata(uint256,string)":                   "cb4799f2",
		"setMetadata(uint256,string,bytes)":             "466648da",
		"getAgentWallet(uint256)":                       "00339509",
		"setAgentWallet(uint256,address,uint256,bytes)": "2d1ef5ae",
		"unsetAgentWallet(uint256)":                     "3fddcf19",
		"isAuthorizedOrOwner(address,uint256)":          "d95e72be",
		"getVersion()":                                  "0d8e6e2c",
		"initialize()":                                  "8129fc1c",
		"upgradeToAndCall(address,bytes)":               "4f1ef286",
		"ownerOf(uint256)":                              "6352211e",
		"tokenURI(uint256)":                             "c87b56dd",
	},
	&bindings.ReputationRegistryMetaData: {
		"giveFeedback(uint256,int128,uint8,string,string,string,string,bytes32)": "3c036a7e",
		"revokeFeedback(uint256,uint64)":                                         "4ab3ca99",
		"appendResponse(uint256,address,uint64,string,bytes32)":                  "c2349ab2",
		"getSummary(uint256,address[],string,string)":                            "81bbba58",
		"readFeedback(uint256,address,uint64)":                                   "232b0810",
		"readAllFeedback(uint256,address[],string,string,bool)":                  "d9d84224",
		"getResponseCount(uint256,address,uint64,address[])":                     "6e04cacd",
		"getClients(uint256)":                                                    "42dd519c",
		"getLastIndex(uint256,address)":                                          "f2d81759",
		"getIdentityRegistry()":                                                  "bc4d861b",
		"getVersion()":                                                           "0d8e6e2c",
		"initialize(address)":                                                    "c4d66de8",
	},
	&bindings.ValidationRegistryMetaData: {
		"validationRequest(address,uint256,string,bytes32)":       "aaf400c4",
		"validationResponse(bytes32,uint8,string,bytes32,string)": "3d659a96",
		"getValidationStatus(bytes32)":                            "ff2febfc",
		"getSummary(uint256,address[],string)":                    "1b7cabd6",
		"getAgentValidations(uint256)":                            "8d5d0c2d",
		"getValidatorRequests(address)":                           "4bf3158c",
	},
}

func TestSelectors(t *testing.T) {
	for meta, functions := range deployedSelectors {
		parsed := parse(t, meta)
		for signature, selector := range functions {
			id, err := hex.DecodeString(selector)
			if err != nil {
				t.Fatal(err)
			}
			m, err := parsed.MethodById(id)
			if err != nil || m.Sig != signature {
				t.Errorf("%s %s: %s is %v, %v", meta.ID, selector, signature, m, err)
			}
		}
	}
	nonexistent := parse(t, &bindings.IdentityRegistryMetaData).Errors["ERC721NonexistentToken"]
	if got := hex.EncodeToString(nonexistent.ID[:4]); got != "7e273289" {
		t.Errorf("ERC721NonexistentToken has selector %s", got)
	}
}

// The bindings carry the artifacts' code: one was not regenerated without the
// other.
func TestBindingsCarryTheArtifacts(t *testing.T) {
	for _, meta := range []*bind.MetaData{&bindings.IdentityRegistryMetaData, &bindings.ReputationRegistryMetaData,
		&bindings.ValidationRegistryMetaData, &bindings.MinimalUUPSMetaData, &bindings.ERC1967ProxyMetaData} {
		raw, err := os.ReadFile(filepath.Join("artifacts", meta.ID+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var artifact struct{ Bytecode, DeployedBytecode string }
		if err := json.Unmarshal(raw, &artifact); err != nil {
			t.Fatal(err)
		}
		if artifact.Bytecode != meta.Bin || len(artifact.DeployedBytecode) < 2*130 {
			t.Errorf("%s differs from its artifact", meta.ID)
		}
	}
}
