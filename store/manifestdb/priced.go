package manifestdb

// Priced returns the SQL of whether the registration file with a hash, an expression, has a known price within bounds:
// the lowest one of the intents of usable manifests of the domains that the file names. least and most are SQL of the
// bounds, "" for none; one MUST be given. A manifest that only pays an agent's wallet gives it no price: its domain
// says so, and not the agent.
//
// It compares each price and not their minimum: Postgres knows how many prices are within bounds, and so whether it is
// shorter to begin with these or to follow the order of a page.
func Priced(sum, least, most string) string {
	within, below := "", ""
	if least != "" {
		within, below = " and i.price >= "+least, " and not "+offered(sum, " and i.price < "+least)
	}
	if most != "" {
		within += " and i.price <= " + most
	}
	return offered(sum, within) + below
}

// offered returns the SQL of whether a usable manifest of a domain that a registration file names has an intent for
// which a condition on i holds. Without nullif Postgres would expect one manifest of 200 not to be denied.
func offered(sum, condition string) string {
	return `exists (select from domains w join manifests m on m.domain = w.domain
		join manifest_intents i on i.domain = m.domain
		where w.sha256 = ` + sum + ` and m.state = 'ok'` + condition + `
			and nullif(` + denied + ` is null, false) is not null)`
}
