package rows

import (
	"repute/store/trustdb"
	"repute/trust/rating"
)

// RowOf converts a stored rating of a client.
func RowOf(r trustdb.ClientRating) rating.Row { return rowOf(r.Row) }
