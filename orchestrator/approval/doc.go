// Package approval describes a transaction for the person who must approve of it: the decoded call with the calls
// inside of it, amounts with their symbols, what the simulation shows leaving the treasury, the events that it emits,
// and the names of addresses that are known.
//
// A Describer fills a Shown by the contracts, tokens and agents that are known. The subject of the question has the
// Hash of the Shown, so that an answer holds for exactly what was seen: another target, amount or effect is another
// question. Amounts that a transaction brings in, as the proceeds of an exchange, change with each block and are left
// out of the hash; ShownEvent.Bound tells people which ones these are.
//
// What an agent says of its transaction, such as its purpose, is shown as its words. Everything else comes from
// bytes, the chain or the configuration: a function is decoded by a known contract, or by the text that the
// treasury's owner gave with an entry of the allow-list (ListedFunction), never by a text of the agent.
package approval
