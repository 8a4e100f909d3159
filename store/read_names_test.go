package store_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/chaindb"
	"repute/store/query"
)

// Addresses are named after the agents of the chain that they own or are the wallet of now,
// a number of them, the oldest first, and after nothing that was once or is elsewhere.
func TestAddressAgents(t *testing.T) {
	t.Parallel()
	db, w := queue(t, "https://x/0", "https://x/1", "https://x/2", "https://x/3") // owners 0 to 3
	w.mine(
		repute.MetadataSet{TokenID: tokenID(0), Key: "agentWallet",
			Value: person(20).Bytes()}, // another than the owner
		repute.MetadataSet{TokenID: tokenID(1), Key: "agentWallet", Value: person(21).Bytes()},
		repute.MetadataSet{TokenID: tokenID(2), Key: "agentWallet", Value: person(20).Bytes()},
	)
	w.mine(
		repute.MetadataSet{TokenID: tokenID(1), Key: "agentWallet"}, // the wallet is cleared with the sale
		repute.Transfer{From: person(1), To: person(0), TokenID: tokenID(1)},
		repute.MetadataSet{TokenID: tokenID(3), Key: "agentWallet"},
		repute.Transfer{From: person(3), To: person(0), TokenID: tokenID(3)},
	)
	w.store(t, db, w.tip().Number)
	other := newWorld(w.chain.ID+1, 1, 1)
	ok(t, chaindb.AddChain(ctxOf(t), db, other.chain))
	other.mine(repute.Transfer{To: person(5), TokenID: tokenID(0)},
		repute.Registered{TokenID: tokenID(0), Owner: person(5)})
	other.store(t, db, other.tip().Number)

	name := func(role string, token int) string { return fmt.Sprintf("%s of agent %d:%d", role, w.chain.ID, token) }
	all := []common.Address{person(0), person(1), person(2), person(3), person(5), person(20), person(21), {},
		person(99)}
	for most, want := range map[int]map[common.Address][]string{
		3: {
			person(0):  {name("owner", 0), name("owner", 1), name("owner", 3)},
			person(2):  {name("owner", 2)},
			person(20): {name("wallet", 0), name("wallet", 2)},
		},
		1: {person(0): {name("owner", 0)}, person(2): {name("owner", 2)}, person(20): {name("wallet", 0)}},
	} {
		got, err := query.AddressAgents(ctxOf(t), db, w.chain.ID, all, most)
		ok(t, err)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("at most %d: %v, want %v", most, got, want)
		}
	}
	if got, err := query.AddressAgents(ctxOf(t), db, w.chain.ID, nil, 3); err != nil || len(got) != 0 {
		t.Errorf("of no address: %v, %v", got, err)
	}
	if got, err := query.AddressAgents(ctxOf(t), db, 999, all, 3); err != nil || len(got) != 0 {
		t.Errorf("of a chain that is not indexed: %v, %v", got, err)
	}
	got, err := query.AddressAgents(ctxOf(t), db, other.chain.ID, all, 3)
	if ok(t, err); len(got) != 1 || len(got[person(5)]) != 1 {
		t.Errorf("of the other chain: %v", got)
	}
}
