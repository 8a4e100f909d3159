package feed

import (
	"fmt"
	"strings"

	"repute/store"
)

// placeOf names a cursor and a filter: followers with the same name get the same changes next.
func placeOf(since string, filter store.ChangeFilter) string {
	token := ""
	if filter.TokenID != nil {
		token = filter.TokenID.Dec()
	}
	return fmt.Sprintf("%s %d %s %s", since, filter.ChainID, token, strings.Join(filter.Kinds, ","))
}
