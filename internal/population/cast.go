package population

import "repute/devnet"

// cast says which accounts play which part in a population.
type cast struct {
	owners     []devnet.Account
	clients    []devnet.Account // the watchtowers first, the wallets of rating agents last
	ring       []devnet.Account
	validators []devnet.Account
	wallets    []devnet.Account // for agents; the first raters of them rate too
	heirs      []devnet.Account // agents are transferred to them
	operators  []devnet.Account
}

// Sizes of the cast. castAccounts is how many accounts the devnet must have, whose numbers the parts divide among them.
const (
	watchtowers  = 8  // clients that measure instead of judging
	soloClients  = 24 // clients that are nobody's wallet
	raterAgents  = 6  // agents that rate others through their wallet
	ringSize     = 50
	castAccounts = 160
)

// Watchtowers are the accounts that measure agents in every population of the devnet.
func Watchtowers(d *devnet.Devnet) []devnet.Account { return newCast(d).clients[:watchtowers] }

// newCast needs castAccounts accounts. Six clients own agents too, so that trust flows on from agents
// that the watchtowers rate well.
func newCast(d *devnet.Devnet) cast {
	accounts := func(from, n int) (list []devnet.Account) {
		for i := range n {
			list = append(list, d.Account(from+i))
		}
		return list
	}
	c := cast{
		owners:     accounts(0, 14),
		clients:    accounts(20, soloClients),
		ring:       accounts(50, ringSize),
		validators: accounts(100, 5),
		wallets:    accounts(110, 30),
		heirs:      accounts(140, 10),
		operators:  accounts(150, 4),
	}
	c.owners = append(c.owners, c.clients[watchtowers:watchtowers+6]...)
	c.clients = append(c.clients, c.wallets[:raterAgents]...)
	return c
}
