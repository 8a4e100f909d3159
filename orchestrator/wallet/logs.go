package wallet

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// emitted is a log of a simulated call.
type emitted struct {
	Address common.Address `json:"address"`
	Topics  []common.Hash  `json:"topics"`
	Data    hexutil.Bytes  `json:"data"`
}

// simulatedBlock is a simulated block with the logs of its calls.
type simulatedBlock struct {
	Calls []struct {
		Logs []emitted `json:"logs"`
	} `json:"calls"`
}

// logs returns the logs that a call would emit at a block. simulated is false if the endpoint does not
// support eth_simulateV1.
func (e *endpoint) logs(ctx context.Context, k *call, at common.Hash) (out []types.Log, simulated bool) {
	request := map[string]any{"blockStateCalls": []any{map[string]any{"calls": []any{message(k.signer.Address(), k.to,
		k.data)}}}}
	var blocks []simulatedBlock
	if err := e.call(ctx, &blocks, "eth_simulateV1", request, pinned(at)); err != nil {
		return nil, false
	}
	for _, b := range blocks {
		for _, c := range b.Calls {
			for _, l := range c.Logs {
				out = append(out, types.Log{Address: l.Address, Topics: l.Topics, Data: l.Data})
			}
		}
	}
	return out, true
}
