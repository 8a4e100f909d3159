package contracts_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute/contracts"
)

const callABI = `[
	{"type":"function","name":"set","inputs":[{"name":"key","type":"bytes32"},{"name":"to","type":"address"},{"name":"amounts","type":"uint256[]"},
		{"name":"pair","type":"tuple","components":[{"name":"selector","type":"bytes4"},{"name":"small","type":"uint8"}]},{"name":"data","type":"bytes"},{"name":"on","type":"bool"}]},
	{"type":"event","name":"Set","inputs":[{"name":"key","type":"bytes32","indexed":true},{"name":"amount","type":"uint256"}]}]`

// A call is shown with every argument, and not at all where its bytes could hold more.
func TestDecodeCall(t *testing.T) {
	of, err := abi.JSON(strings.NewReader(callABI))
	if err != nil {
		t.Fatal(err)
	}
	pair := struct {
		Selector [4]byte
		Small    uint8
	}{[4]byte{1, 2, 3, 4}, 7}
	data, err := of.Pack("set", common.HexToHash("0xaa"), common.HexToAddress("0xbb"),
		[]*big.Int{big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), 200)}, pair, []byte{5, 6}, true)
	if err != nil {
		t.Fatal(err)
	}
	call, err := contracts.DecodeCall(of, data)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(call.Values())
	want := `{"amounts":["1","1606938044258990275541962092341162602522202993782792835301376"],"data":"0x0506","key":"0x00000000000000000000000000000000000000000000000000000000000000aa",` +
		`"on":true,"pair":{"selector":"0x01020304","small":"7"},"to":"0x00000000000000000000000000000000000000bb"}`
	if string(got) != want || call.Function != "set(bytes32,address,uint256[],(bytes4,uint8),bytes,bool)" {
		t.Errorf("%s %s", call.Function, got)
	}
	for name, bad := range map[string][]byte{"longer": append(data[:len(data):len(data)], 0),
		"cut":     data[:len(data)-32],
		"unknown": {1, 2, 3, 4}, "short": {1}, "none": nil} {
		if call, err := contracts.DecodeCall(of, bad); err == nil {
			t.Errorf("%s: %+v", name, call)
		}
	}
	l := types.Log{Topics: []common.Hash{of.Events["Set"].ID, common.HexToHash("0xaa")},
		Data: common.LeftPadBytes([]byte{9}, 32)}
	name, fields, err := contracts.DecodeEvent(of, &l)
	if err != nil || name != "Set" || contracts.Plain(fields["amount"]) != "9" ||
		contracts.Plain(fields["key"]) != call.Values()["key"] {
		t.Errorf("%s %v, %v", name, fields, err)
	}
	l.Topics = l.Topics[:1]
	if _, fields, err := contracts.DecodeEvent(of, &l); err == nil {
		t.Errorf("without a topic: %v", fields)
	}
}
