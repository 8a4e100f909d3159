package synth

import (
	"math/big"
	"strconv"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
)

// until is the end of a history's row, null while it holds.
func until(block uint32) any {
	if block == open {
		return nil
	}
	return uint64(block)
}

// id is a token as the dump has it: a number in quotes, since tokens have 256 bits.
func id(token uint32) number { return number(strconv.FormatUint(uint64(token), 10)) }

// raw returns an address or a hash as columns hold them: empty for zero.
func (p party) raw() []byte {
	if p == 0 {
		return []byte{}
	}
	a := p.address()
	return a[:]
}

func (d digest) raw() []byte {
	if d == 0 {
		return []byte{}
	}
	h := d.hash()
	return h[:]
}

// tag and uri are texts as the chain has them: bytes, which need not be UTF-8.
func (h *History) tag(n uint16) []byte { return []byte(h.enc.tags[n]) }

func (t text) uri() []byte { return []byte(t.String()) }

// eachLog passes every log with its event in order.
func (h *History) eachLog(fn func(r *repute.Record) error) error {
	return h.eachBlock(func(number uint64, raw []byte) error {
		if readBlock(raw).logs == 0 {
			return nil
		}
		logs, err := h.Logs(number)
		if err != nil {
			return err
		}
		for _, l := range logs {
			e, err := contracts.Decode(*l)
			if err == nil {
				err = fn(&repute.Record{Log: *l, Event: e})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// eventRows decodes the logs again: the dump of events is of what a node sends.
func eventRows(h *History, yield yieldRow) error {
	return h.eachLog(func(r *repute.Record) error {
		l := &r.Log
		var token any
		if t, ok := repute.AgentOf(r.Event); ok {
			token = number(t.Dec())
		}
		topics := make([]byte, 0, 4*common.HashLength)
		for _, t := range l.Topics {
			topics = append(topics, t[:]...)
		}
		return yield(l.BlockNumber, uint64(l.Index), uint64(l.TxIndex), l.BlockHash[:], l.BlockTimestamp,
			uint64(r.Event.Kind()), l.Address[:], l.TxHash[:], token, topics, l.Data)
	})
}

// versionRows, entryRows and spanRows list histories. The end of a row that still holds is null.
func versionRows(h *History, yield yieldRow) error {
	for _, v := range h.versions {
		s := v.State
		if err := yield(id(v.Token), uint64(v.From), until(v.To), s.Owner.raw(), false, s.Wallet.raw(),
			s.Approved.raw(), s.URI.uri()); err != nil {
			return err
		}
	}
	return nil
}

func entryRows(h *History, yield yieldRow) error {
	for _, e := range h.entries {
		if err := yield(id(e.Token), []byte(metadataKeys[e.Key]), uint64(e.From), until(e.To), uint64(e.Log),
			metadataValue(e.Value)); err != nil {
			return err
		}
	}
	return nil
}

func spanRows(h *History, yield yieldRow) error {
	for _, s := range h.spans {
		if err := yield(s.Owner.raw(), s.Operator.raw(), uint64(s.From), until(s.To)); err != nil {
			return err
		}
	}
	return nil
}

func ratingRows(h *History, yield yieldRow) error {
	for _, r := range h.ratings {
		var block, log any
		if r.Revoked != (point{}) {
			block, log = uint64(r.Revoked.Block), uint64(r.Revoked.Log)
		}
		if err := yield(id(r.Token), r.Client.raw(), uint64(r.Index), uint64(r.At.Block), uint64(r.At.Log),
			numeric(r.Value.big()), uint64(r.Decimals), h.tag(r.Tag1), h.tag(r.Tag2), r.URI.uri(),
			[]byte(r.Endpoint.String()), r.Hash.raw(), block, log, nil); err != nil {
			return err
		}
	}
	return nil
}

// numeric is a value of a column numeric.
func numeric(v *big.Int) number { return number(v.String()) }

func responseRows(h *History, yield yieldRow) error {
	for _, r := range h.responses {
		if err := yield(id(r.Token), r.Client.raw(), uint64(r.Index), uint64(r.At.Block), uint64(r.At.Log),
			r.Responder.raw(), r.URI.uri(), r.Hash.raw()); err != nil {
			return err
		}
	}
	return nil
}

func requestRows(h *History, yield yieldRow) error {
	for _, r := range h.requests {
		if err := yield(validationAddress[:], r.Hash.raw(), id(r.Token), r.Validator.raw(), r.URI.uri(),
			uint64(r.At.Block), uint64(r.At.Log)); err != nil {
			return err
		}
	}
	return nil
}

func answerRows(h *History, yield yieldRow) error {
	for _, a := range h.answers {
		if err := yield(validationAddress[:], a.Request.raw(), uint64(a.At.Block), uint64(a.At.Log),
			uint64(a.Response), a.URI.uri(), a.Hash.raw(), h.tag(a.Tag)); err != nil {
			return err
		}
	}
	return nil
}

// agentRows lists the newest state of each agent, with its counts.
func agentRows(h *History, yield yieldRow) error {
	for token, a := range h.agents {
		s := a.Now
		if err := yield(id(uint32(token)), s.Owner.raw(), false, s.Wallet.raw(), s.Approved.raw(), s.URI.uri(),
			uint64(a.Registered.Block), uint64(a.Registered.Log), uint64(a.Updated.Block), uint64(a.Updated.Log),
			uint64(a.Feedback), uint64(a.Revoked), uint64(a.Clients), uint64(a.Responses),
			uint64(a.Validation)); err != nil {
			return err
		}
	}
	return nil
}
