package agents

import "repute/contracts/bindings"

// Encoders of the contracts that agents call. They hold no state.
var (
	identities  = bindings.NewIdentityRegistry()
	reputations = bindings.NewReputationRegistry()
	validations = bindings.NewValidationRegistry()
	treasuries  = bindings.NewOpenFiTreasury()
)
