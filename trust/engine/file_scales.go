package engine

import (
	"context"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/manifest"
	"repute/store/scoredb"
	"repute/store/trustdb"
	"repute/trust/rating"
	"repute/trust/replay"
)

// readFileScales reads which scales feedback files state as of the run's block, stores them and sets FileScales of the
// run. They are an input of the run because a file may be read long after its rating was given.
func (k *keeper) readFileScales(ctx context.Context, run *scoredb.Run) error {
	stated := statedScales{}
	if err := trustdb.ScaleClaims(ctx, k.db, k.chain, run.Block.Number, stated.add); err != nil {
		return err
	}
	run.FileScales = common.Hash{}
	if len(stated) == 0 {
		return nil
	}
	body := replay.EncodeFileScales(stated.list())
	run.FileScales = replay.HashInput(body)
	return k.keep(ctx, body)
}

// statedScales are the ends of scales by rater and tag, 0 for contradictory statements.
type statedScales map[statedScale]int

// statedScale identifies what one rater writes with one tag.
type statedScale struct {
	rater common.Address
	tag   string
}

// add adds the statement of one file, unless the file contradicts its rating.
func (s statedScales) add(c trustdb.ScaleClaim) {
	top, ok := stateScale(&c)
	if !ok {
		return
	}
	key := statedScale{c.Rater, c.Rating.Tag1}
	if known, twice := s[key]; twice && known != top {
		top = 0
	}
	s[key] = top
}

// list returns all statements.
func (s statedScales) list() []rating.FileScale {
	out := make([]rating.FileScale, 0, len(s))
	for key, top := range s {
		out = append(out, rating.FileScale{Rater: key.rater, Tag: key.tag, Top: top})
	}
	return out
}

// maxScale is the largest end of a scale that a file may state.
const maxScale = 1_000_000

// stateScale returns the end of the scale that a file states. ok is false when the file contradicts the rating on the
// chain, when the rating's value is not on the scale, and when the scale does not begin at 0 or 1.
func stateScale(c *trustdb.ScaleClaim) (top int, ok bool) {
	file, rating := c.File, c.Rating
	rating.Agent.ChainID, rating.Agent.Registry, file.Registry = 0, common.Address{}, ""
	rating.Client = c.Rater // the file of a gateway names the payer, not the gateway
	differs := []string{manifest.CodeOtherClient, manifest.CodeOtherAgent, manifest.CodeOtherValue,
		manifest.CodeOtherTag}
	for _, p := range manifest.MatchFeedback(file, rating) {
		if slices.Contains(differs, p.Code) {
			return 0, false
		}
	}
	least, most := new(big.Rat), new(big.Rat)
	if _, ok := most.SetString(c.File.Scale.Max); !ok || !most.IsInt() || most.Cmp(big.NewRat(maxScale, 1)) > 0 {
		return 0, false
	}
	if text := c.File.Scale.Min; text != "" {
		if _, ok := least.SetString(text); !ok || least.Sign() != 0 && least.Cmp(big.NewRat(1, 1)) != 0 {
			return 0, false
		}
	}
	value, isNumber := new(big.Rat).SetString(repute.Amount{Value: rating.Value, Decimals: rating.Decimals}.Decimal())
	if !isNumber || value.Cmp(most) > 0 || value.Cmp(least) < 0 {
		return 0, false
	}
	return int(most.Num().Int64()), true
}
