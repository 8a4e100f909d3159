package trust_test

import (
	"bytes"
	"testing"

	"repute"
	"repute/store"
)

// pair is a settled ledger with two new agents of one owner: a good one, and one that
// eight roots condemn in the last block alone.
func pair(t *testing.T) (l *ledger, db *store.DB, good, bad uint64) {
	t.Helper()
	l, db = praised(t)
	s := l.state()
	good, bad = uint64(len(s.owners)), uint64(len(s.owners)+1)
	l.mine(s, append(append(s.mint(person(23)), s.mint(person(23))...), s.rate(good, person(0), 95))...)
	s = l.state()
	var ratings []repute.Event
	for i := range rooted { // equal words in one block were one opinion {
		ratings = append(ratings, s.rate(bad, person(i), int64(i)))
	}
	l.mine(s, ratings...)
	l.store(t, db, 60)
	await(t, "the bad agent limits the good one", func() bool { return limited(t, db, good) })
	return l, db, good, bad
}

func limited(t *testing.T, db *store.DB, agent uint64) bool {
	t.Helper()
	var result []byte
	ok(t, db.Pool().QueryRow(t.Context(), `select coalesce((select result from trust_scores where token_id = $1), '')`, agent).Scan(&result))
	return bytes.Contains(result, []byte(`"guard"`))
}

// An agent is free of another one that its owner gives away, and whose score does not
// change by that.
func TestGuardEndsWhenKinIsGivenAway(t *testing.T) {
	t.Parallel()
	l, db, good, bad := pair(t)
	s := l.state()
	s.owners[bad] = person(22)
	id := token(bad)
	l.mine(s, repute.MetadataSet{TokenID: id, Key: "agentWallet"}, repute.Transfer{From: person(23), To: person(22), TokenID: id})
	l.store(t, db, 60)
	await(t, "the good agent is free", func() bool { return !limited(t, db, good) })
	s = l.state()
	s.owners[bad] = person(23)
	l.mine(s, repute.MetadataSet{TokenID: id, Key: "agentWallet"}, repute.Transfer{From: person(22), To: person(23), TokenID: id})
	l.store(t, db, 60)
	await(t, "it is limited again", func() bool { return limited(t, db, good) })
}

// An agent is free of another one that nobody has judged any more, as its ratings were
// on blocks that were replaced.
func TestGuardEndsWhenKinIsForgotten(t *testing.T) {
	t.Parallel()
	l, db, good, _ := pair(t)
	l.fork(l.tip().Number - 1)
	l.mine(l.state())
	l.store(t, db, 60)
	await(t, "the good agent is free", func() bool { return !limited(t, db, good) })
}
