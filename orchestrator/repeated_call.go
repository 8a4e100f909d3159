package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"repute"
	"repute/orchestrator/transaction"
	"repute/store/rundb"
)

// repeatedCall is the journaled error of a call whose end is unknown, and which a person had made again. It is compared
// with stored errors, so the text MUST NOT change.
const repeatedCall = "it is unknown whether the call happened; it was made again because a person said so"

// begin journals a call and charges it, or returns the call that has its key in the journal already. If a call that may
// be made only once began before and its end is unknown, a person is asked. After an approval a new call is journaled
// under the key KEY/again-N, so that the person is asked again if that one is cut off, too. After a refusal the earlier
// call is returned as failed.
func (c *Context) begin(ctx context.Context, r *charged) (repute.Receipt, error) {
	key := r.Key
	for again := 1; ; again++ {
		journaled, known, err := rundb.BeginCall(ctx, c.w.e.db, c.w.lease, r.Receipt,
			rundb.Charge{ToolCalls: 1, Tokens: r.most.Tokens, Cost: r.most.Cost, Once: r.once,
				MostOfRun: int(c.w.info.Manifest.Budget().ToolCalls)})
		if err != nil {
			return journaled, c.w.lost(err)
		}
		c.leaves(journaled.ID)
		switch {
		case !r.once || !known, journaled.Done && journaled.Error != repeatedCall:
			return journaled, nil
		case !journaled.Done:
			if journaled, err = c.settleOpen(ctx, r, journaled); err != nil || journaled.Error != repeatedCall {
				return journaled, err
			}
		}
		r.Key = fmt.Sprintf("%s/again-%d", key, again)
	}
}

// settleOpen asks a person about a call whose end is unknown, and journals the answer as its end.
func (c *Context) settleOpen(ctx context.Context, r *charged, open repute.Receipt) (repute.Receipt, error) {
	shown := string(r.Request)
	if len(shown) > 2000 {
		shown = strings.ToValidUTF8(shown[:2000], "") + "…"
	}
	err := c.Confirm(ctx, "again/"+open.Key,
		fmt.Sprintf("make the call %s with %s again: it had begun when its process "+
			"ended, so that it is unknown whether it happened", r.Ref, shown))
	var refused *transaction.DeniedError
	switch {
	case err == nil:
		open.Error = repeatedCall
	case errors.As(err, &refused):
		open.Error = "it is unknown whether the call happened, and it is not made again: " + err.Error()
	default:
		return open, err
	}
	open.Done = true
	outcome := rundb.CallOutcome{Error: open.Error, Uncertain: true}
	if err := rundb.EndCall(ctx, c.w.e.db, c.w.lease, open.ID, outcome); err != nil {
		return open, c.w.lost(err)
	}
	return open, nil
}
