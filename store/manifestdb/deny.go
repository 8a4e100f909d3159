package manifestdb

// denied is the SQL of why manifest m must not be shown, by its domain or its bytes; null when it may be. It is null at
// once while the deny-list is empty, which is the common case.
const denied = `case when exists (select from denied) then (select max(x.reason) from denied x
	where (x.kind, x.value) in (('host', m.domain), ('sha256', encode(m.sha256, 'hex')))) end`
