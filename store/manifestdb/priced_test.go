package manifestdb_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"repute/store"
	"repute/store/manifestdb"
)

// A registration file has the lowest known price of the usable manifests of all its domains, whatever the bounds are,
// and none without such a price.
func TestPricedIsOfTheLowestPrice(t *testing.T) {
	t.Parallel()
	db := open(t, store.Options{})
	const files = "unnest(array['cheap', 'dear', 'both', 'denied', 'broken', 'free of price']) f"
	exec(t, db, `
		insert into documents (sha256, media_type, first_seen) select sha256(f::bytea), '', now() from `+files+`;
		insert into domains (sha256, domain) select sha256(f::bytea), d from (values ('cheap', 'a.example'),
			('dear', 'b.example'), ('both', 'a.example'), ('both', 'b.example'), ('denied', 'c.example'),
			('broken', 'd.example'), ('free of price', 'e.example')) x(f, d)`)
	for _, domain := range []string{"a", "b", "c", "d", "e"} {
		save(t, db, domain+".example", manifestdb.Result{Content: content(1, "one", "two", "three")})
	}
	exec(t, db, `
		update manifest_intents i set price = x.price from (values ('a.example', 'one', 1), ('a.example', 'two', 9),
			('b.example', 'one', 5), ('b.example', 'two', 7), ('c.example', 'one', 1), ('d.example', 'one', 1)
			) x(domain, name, price)
		where (i.domain, i.name) = (x.domain, x.name);
		update manifests set state = 'invalid' where domain = 'd.example';
		insert into denied (kind, value, reason) values ('host', 'c.example', 'test')`)
	lowest := map[string]int{"cheap": 1, "dear": 5, "both": 1}
	for least := 0; least <= 10; least++ {
		for most := 0; most <= 10; most++ {
			if least == 0 && most == 0 {
				continue // no bound
			}
			bounds, want := [2]string{}, []string{}
			if least > 0 {
				bounds[0] = fmt.Sprint(least)
			}
			if most > 0 {
				bounds[1] = fmt.Sprint(most)
			}
			for _, file := range []string{"both", "cheap", "dear"} {
				if price := lowest[file]; price >= least && (most == 0 || price <= most) {
					want = append(want, file)
				}
			}
			rows, err := db.Readers().Query(t.Context(), "select f from "+files+
				" where "+manifestdb.Priced("sha256(f::bytea)", bounds[0], bounds[1])+" order by f")
			if err != nil {
				t.Fatal(err)
			}
			got, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%v: %v, %v, want %v", bounds, got, err, want)
			}
		}
	}
}
