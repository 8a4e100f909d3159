package graph

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"repute"
	"repute/internal/httpapi"
)

// readCost is what a read of its own costs, beside its rows: without it many
// small reads under many aliases would be cheap.
const readCost = 50

// explainCost is an explanation's, with all the rows it may list.
const explainCost = 2000

// errCost ends a query that asks for too much. The answer names it once for the
// whole query (costError).
var errCost = fmt.Errorf("query cost exceeded: %w", repute.ErrLimited)

// budget counts down what one query may ask for. Rows are charged before they
// are read, for the most that may come. A query that exceeds it ends only where the next field charges; fields that
// were charged before are still resolved.
type budget struct {
	limit int
	spent atomic.Int64
}

// budgetKey is the context key of the budget.
type budgetKey struct{}

// withBudget returns a context in which fields charge what they read, and the budget, which tells when it is exceeded.
func withBudget(ctx context.Context, limit int) (context.Context, *budget) {
	b := &budget{limit: limit}
	return context.WithValue(ctx, budgetKey{}, b), b
}

// charge books cost on the query's budget. It is called before each read and is safe for concurrent use. A context
// without a budget is a mistake of this package.
func charge(ctx context.Context, cost int) error {
	b, found := ctx.Value(budgetKey{}).(*budget)
	if !found {
		return errors.New("query without budget")
	}
	if b.spent.Add(int64(cost)) > int64(b.limit) {
		return errCost
	}
	return nil
}

// exceeded reports whether the query asked for more than it may. Its answer is then the error alone: fields that were
// read before have null or partial values.
func (b *budget) exceeded() bool { return b.spent.Load() > int64(b.limit) }

// defaultFirst is the page size where first is absent or null.
const defaultFirst = 20

// pageSize bounds first. Arguments have no defaults in the schema: the library refuses null,
// and a variable that is absent, for those that have.
func pageSize(first *int32) (int, error) {
	if first == nil {
		return defaultFirst, nil
	}
	if *first < 1 || int(*first) > httpapi.MaxPage {
		return 0, repute.Invalid("first", "not a page size", "a number from 1 to "+strconv.Itoa(httpapi.MaxPage))
	}
	return int(*first), nil
}

// paidPage returns the size of a page, whose rows it charges with what the read costs besides. The size is checked
// first: a wrong one costs nothing.
func paidPage(ctx context.Context, cost int, first *int32) (size int, err error) {
	if size, err = pageSize(first); err != nil {
		return 0, err
	}
	return size, charge(ctx, cost+size)
}
