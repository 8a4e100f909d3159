package manifestdb

// PricedDocuments returns the SQL of the sha256 of the registration files with a known price: the lowest one of the
// intents of usable manifests of the domains that the file names. least and most are SQL of its bounds; "" for none. A
// manifest that only pays an agent's wallet gives it no price: its domain says so, and not the agent.
func PricedDocuments(least, most string) string {
	having := ""
	if least != "" {
		having += " and min(i.price) >= " + least
	}
	if most != "" {
		having += " and min(i.price) <= " + most
	}
	return `select w.sha256
		from (select domain, min(price) as price from manifest_intents where price is not null group by domain) i
		join manifests m on m.domain = i.domain join domains w on w.domain = i.domain
		where m.state = 'ok' and ` + denied + ` is null group by w.sha256 having true` + having
}
