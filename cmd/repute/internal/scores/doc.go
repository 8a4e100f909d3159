// Package scores has the commands about trust.
//
// Three of them change what scores start from, in the database: `repute roots` (addresses that are trusted), `repute
// evidence` (addresses that are one identity) and, as a file of the configuration, the sources that `repute sources`
// shows and checks. The others read: `repute trust coverage` says how much of the feedback counts, and `repute score`
// explains a stored score and computes it again.
//
// Commands that change roots or links are about one chain: the one of --chain, the only configured one, or the only
// stored one (theChain). Imports of files take entries of several chains and store them chain by chain, each chain in
// a transaction of its own: a file is read and checked as a whole before the first is stored, so that a wrong entry
// stores nothing, but a database that goes away in between leaves the later chains as they were. The command can then
// be repeated. Nothing here computes scores: the engine of a process with the role trust sees the change with the next
// epoch.
//
// sources check and sources verify ask nodes of the configured chains. They share ask, which resolves the chain, reads
// the newest run of the engine and opens the endpoints, and closes them when the command ends. check takes the policy
// of the configuration and says what holds now. verify takes the policy of the run and says whether the run's
// credentials can be found again.
package scores
