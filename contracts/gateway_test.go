package contracts

import (
	"errors"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"

	"repute"
)

// ticketLogs are the logs of a ticket in all layouts, by the number of indexed arguments and the signature.
func ticketLogs(e repute.TicketConsumed) (logs []types.Log) {
	id := common.Hash(e.TokenID.Bytes32())
	words := []common.Hash{e.TicketID, common.BytesToHash(e.Payer[:]), id, common.BytesToHash(e.Agent[:]),
		e.FeedbackHash}
	for _, topic := range GatewayTopics() {
		for indexed := range 4 {
			l := types.Log{Topics: append([]common.Hash{topic}, words[:indexed]...)}
			l.Data = flatten(words[indexed:])
			logs = append(logs, l)
		}
	}
	return logs
}

func TestDecodeTickets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, n int) []byte { return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, name) }
		want := repute.TicketConsumed{TicketID: common.Hash(draw("ticket", 32)),
			Payer: common.Address(draw("payer", 20)),
			Agent: common.Address(draw("agent", 20)), FeedbackHash: common.Hash(draw("hash", 32))}
		want.TokenID.SetBytes32(draw("token", 32))
		for _, l := range ticketLogs(want) {
			for _, tail := range [][]byte{nil, make([]byte, 31), make([]byte, 64)} {
				longer := l
				longer.Data = append(append([]byte{}, l.Data...), tail...)
				if got, err := Decode(longer); err != nil || got != repute.Event(want) {
					t.Fatalf("%d topics, %d bytes: %+v, %v", len(l.Topics), len(longer.Data), got, err)
				}
			}
			short := l
			short.Data = l.Data[:rapid.IntRange(0, len(l.Data)-1).Draw(t, "cut")]
			if _, err := Decode(short); !errors.Is(err, ErrMalformed) {
				t.Fatalf("cut: %v", err)
			}
		}
	})
}

// An address that is wider than 20 bytes shows another layout than the arguments in the order of declaration.
func TestDecodeTicketsOfAnotherLayout(t *testing.T) {
	t.Parallel()
	for _, at := range []int{1, 3} {
		l := ticketLogs(repute.TicketConsumed{Payer: alice, Agent: bob})[0]
		l.Data[32*at] = 1
		if _, err := Decode(l); !errors.Is(err, ErrMalformed) {
			t.Errorf("argument %d: %v", at, err)
		}
	}
	l := types.Log{Topics: []common.Hash{crypto.Keccak256Hash([]byte("TicketConsumed(bytes32,address,uint256,bytes32)"))}}
	if _, err := Decode(l); !errors.Is(err, ErrForeign) {
		t.Errorf("another event of the same name: %v", err)
	}
}

// The gateways of a chain are followed, and nobody else's tickets are decoded.
func TestDecoderFollowsGateways(t *testing.T) {
	t.Parallel()
	listed := common.Address{1}
	d := NewDecoder(repute.Chain{Identity: alice, Reputation: bob,
		Gateways: []repute.WatchedContract{{Address: listed, From: 7}}})
	if !reflect.DeepEqual(d.Addresses, []common.Address{alice, bob, listed}) {
		t.Errorf("addresses %v", d.Addresses)
	}
	l := ticketLogs(repute.TicketConsumed{Payer: alice})[2]
	for at, want := range map[common.Address]bool{listed: true, {2}: false, bob: false} {
		l.Address = at
		if e, ours := d.Decode(l); ours != want || ours && e.Kind() != repute.KindTicketConsumed {
			t.Errorf("of %s: %v, %v", at, e, ours)
		}
	}
	l.Address, l.Data = listed, l.Data[:31]
	if e, ours := d.Decode(l); !ours || e != repute.Event(repute.Undecoded{Reason: repute.MalformedEvent}) {
		t.Errorf("cut: %v, %v", e, ours)
	}
}

// FuzzDecodeTicket decodes any bytes as a ticket: what is accepted has exactly one reading.
func FuzzDecodeTicket(f *testing.F) {
	for _, l := range ticketLogs(repute.TicketConsumed{Payer: alice, Agent: bob, FeedbackHash: hash1}) {
		f.Add(flatten(l.Topics[1:]), l.Data)
	}
	f.Fuzz(func(t *testing.T, topics, data []byte) {
		l := types.Log{Topics: GatewayTopics()[:1], Data: data}
		for ; len(topics) >= 32 && len(l.Topics) < 4; topics = topics[32:] {
			l.Topics = append(l.Topics, common.Hash(topics[:32]))
		}
		got, err := Decode(l)
		if err != nil {
			oneKind(t, err)
			return
		}
		words := append(flatten(l.Topics[1:]), data...)
		e := got.(repute.TicketConsumed)
		if again := ticketLogs(e)[0].Data; string(again) != string(words[:len(again)]) {
			t.Fatalf("%x is read as %x", words, again)
		}
	})
}
