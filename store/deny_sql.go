package store

// What the deny-list forbids, as SQL for all who read: each gives the reason, null when
// there is none. Mostly nothing is denied, and then no row is asked about.

// orNothing is null at once while the deny-list is empty.
func orNothing(reason string) string {
	return `case when exists (select from denied) then ` + reason + ` end`
}

// deniedBytes is about the bytes with hash sum, wherever they come from: they are named
// by their sha256, or by a CID that stands for nothing else.
func deniedBytes(sum string) string {
	return orNothing(`(select max(x.reason) from (
		select reason from denied where (kind, value) in (('sha256', encode(` + sum + `, 'hex')), ('cid', '1220' || encode(` + sum + `, 'hex')))
		union all
		select n.reason from document_roots r join denied n on n.kind = 'cid' and n.value = encode(r.multihash, 'hex')
		where r.sha256 = ` + sum + `) x)`)
}

// deniedWay is about URI u, whatever it gives: by its host, the host it leads to, or the
// CID it begins with.
func deniedWay(u string) string {
	return orNothing(`(select max(x.reason) from denied x where (x.kind, x.value) in (('cid', encode(` + u + `.cid, 'hex')),
		('host', split_part(` + u + `.host, ':', 1)), ('host', split_part(` + u + `.served_by, ':', 1))))`)
}

// deniedAgent is about agent a.
func deniedAgent(a string) string { return deniedToken(a+".chain_id", a+".token_id") }

// deniedToken is about the agent of a chain with a token.
func deniedToken(chain, token string) string {
	return orNothing(`(select x.reason from denied x where x.kind = 'agent' and x.value = ` + chain + ` || ':' || ` + token + `)`)
}

// deniedFile selects why the file of URI u must not be shown.
func deniedFile(u string) string {
	return `coalesce(` + deniedBytes(u+".sha256") + `, ` + deniedWay(u) + `)`
}

// deniedDocument selects why the document of URI u must not be shown for agent a.
func deniedDocument(u, a string) string {
	return `coalesce(` + deniedBytes(u+".sha256") + `, ` + deniedWay(u) + `, ` + deniedAgent(a) + `)`
}

// deniedUsers selects why URI u must not be read for its agents: each that has it is
// denied, or nobody has it and a denied one had it. Files of feedback are everybody's.
func deniedUsers(u string) string {
	return orNothing(`(case when ` + u + `.rank < 2 and not exists (
			select from agents a where a.uri_id = ` + u + `.id and ` + deniedAgent("a") + ` is null)
		then (select max(x.reason) from denied x
			join agent_states s on s.chain_id = case x.kind when 'agent' then split_part(x.value, ':', 1)::bigint end
				and s.token_id = case x.kind when 'agent' then split_part(x.value, ':', 2)::numeric end
			where x.kind = 'agent' and s.uri_id = ` + u + `.id) end)`)
}

// deniedURI is the reason why a URI must not be fetched.
func deniedURI(u string) string {
	return `coalesce(` + deniedWay(u) + `, ` + deniedUsers(u) + `)`
}

// deniedServed selects why the stored bytes with hash sum must not be given to anybody:
// they are denied themselves, or every URI is that gave them, now or before.
func deniedServed(sum string) string {
	return orNothing(`coalesce(` + deniedBytes(sum) + `,
		(select max(w.reason) from (
			select ` + deniedURI("y") + ` as reason from (
				select id from uris where sha256 = ` + sum + ` union select uri_id from fetches where sha256 = ` + sum + `) g
			join uris y on y.id = g.id) w
		having bool_and(w.reason is not null)))`)
}
