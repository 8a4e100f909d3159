package contracts

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
)

// shape is what the ABI fixes about one event.
type shape struct {
	kind      repute.EventKind
	signature string
	topics    int // topics of the log, topic0 included
	words     int // words of the data's head
	decode    func(*args) repute.Event
}

// shapes lists every event that Decode knows, in the order of their kinds. The counts of topics and words are what the
// declarations in the ABI say: newArgs trusts them.
var shapes = []shape{
	{repute.KindTransfer, "Transfer(address,address,uint256)", 4, 0, transfer},
	{repute.KindRegistered, "Registered(uint256,string,address)", 3, 1, registered},
	{repute.KindURIUpdated, "URIUpdated(uint256,string,address)", 3, 1, uriUpdated},
	{repute.KindMetadataSet, "MetadataSet(uint256,string,string,bytes)", 3, 2, metadataSet},
	{repute.KindMetadataUpdate, "MetadataUpdate(uint256)", 1, 1, metadataUpdate},
	{repute.KindBatchMetadataUpdate, "BatchMetadataUpdate(uint256,uint256)", 1, 2, batchMetadataUpdate},
	{repute.KindApproval, "Approval(address,address,uint256)", 4, 0, approval},
	{repute.KindApprovalForAll, "ApprovalForAll(address,address,bool)", 3, 1, approvalForAll},
	{repute.KindNewFeedback,
		"NewFeedback(uint256,address,uint64,int128,uint8,string,string,string,string,string,bytes32)",
		4, 8, newFeedback},
	{repute.KindFeedbackRevoked, "FeedbackRevoked(uint256,address,uint64)", 4, 0, feedbackRevoked},
	{repute.KindResponseAppended, "ResponseAppended(uint256,address,uint64,address,string,bytes32)",
		4, 3, responseAppended},
	{repute.KindValidationRequest, "ValidationRequest(address,uint256,string,bytes32)", 4, 1, validationRequest},
	{repute.KindValidationResponse,
		"ValidationResponse(address,uint256,bytes32,uint8,string,bytes32,string)", 4, 4, validationResponse},
	{repute.KindUpgraded, "Upgraded(address)", 2, 0, upgraded},
	{repute.KindInitialized, "Initialized(uint64)", 1, 1, initialized},
	{repute.KindOwnershipTransferred, "OwnershipTransferred(address,address)", 3, 0, ownershipTransferred},
	{repute.KindEIP712DomainChanged, "EIP712DomainChanged()", 1, 0, eip712DomainChanged},
}

// legacySignatures are the events of the ABIs that testnet deployments had
// before January 2026. Other arguments mean other things there (a score, hashed
// tags), so they are named, never decoded.
var legacySignatures = []string{
	"NewFeedback(uint256,address,uint8,bytes32,bytes32,string,bytes32)",
	"NewFeedback(uint256,address,uint8,string,string,string,bytes32)",
	"NewFeedback(uint256,address,uint8,string,string,string,string,bytes32)",
	"NewFeedback(uint256,address,uint64,uint8,string,string,string,string,bytes32)",
	"NewFeedback(uint256,address,uint64,uint8,string,string,string,string,string,bytes32)",
	"NewFeedback(uint256,address,uint64,int256,uint8,string,string,string,string,string,bytes32)",
	"UriUpdated(uint256,string,address)",
	"MetadataSet(uint256,string,string,string)",
	"ValidationResponse(address,uint256,bytes32,uint8,string,bytes32,bytes32)",
}

// The tables by topic, computed once from the signatures and never changed.
var (
	shapeOf  = indexShapes()
	legacyOf = indexLegacy()
)

// indexShapes and indexLegacy find what a first topic stands for. Two events never share one.
func indexShapes() map[common.Hash]*shape {
	byTopic := make(map[common.Hash]*shape, len(shapes))
	for i := range shapes {
		byTopic[topicOf(shapes[i].signature)] = &shapes[i]
	}
	return byTopic
}

func indexLegacy() map[common.Hash]string {
	byTopic := make(map[common.Hash]string, len(legacySignatures))
	for _, signature := range legacySignatures {
		byTopic[topicOf(signature)] = signature
	}
	return byTopic
}

// topicOf is the first topic of the events of a signature.
func topicOf(signature string) common.Hash {
	return crypto.Keccak256Hash([]byte(signature))
}

// Topic is the first topic of an event's logs, zero for an unknown kind.
func Topic(kind repute.EventKind) common.Hash {
	for _, s := range shapes {
		if s.kind == kind {
			return topicOf(s.signature)
		}
	}
	return common.Hash{}
}

// Topics lists the first topics of all events that Decode knows, for log
// filters, in order of their kinds.
func Topics() []common.Hash {
	topics := make([]common.Hash, len(shapes))
	for i, s := range shapes {
		topics[i] = topicOf(s.signature)
	}
	return topics
}

// LegacyTopics lists the first topics that Decode refuses with a LegacyError.
func LegacyTopics() []common.Hash {
	topics := make([]common.Hash, len(legacySignatures))
	for i, signature := range legacySignatures {
		topics[i] = topicOf(signature)
	}
	return topics
}

// identityTopics lists what an Identity Registry and its proxy emit.
func identityTopics() []common.Hash {
	return TopicsOf(repute.KindTransfer, repute.KindRegistered, repute.KindURIUpdated,
		repute.KindMetadataSet, repute.KindMetadataUpdate, repute.KindBatchMetadataUpdate,
		repute.KindApproval, repute.KindApprovalForAll, repute.KindEIP712DomainChanged,
		repute.KindUpgraded, repute.KindInitialized, repute.KindOwnershipTransferred)
}

// reputationTopics lists what a Reputation Registry and its proxy emit.
func reputationTopics() []common.Hash {
	return TopicsOf(repute.KindNewFeedback, repute.KindFeedbackRevoked, repute.KindResponseAppended,
		repute.KindUpgraded, repute.KindInitialized, repute.KindOwnershipTransferred)
}

// ValidationTopics lists what a Validation Registry and its proxy emit. The
// first two find validation contracts at any address.
func ValidationTopics() []common.Hash {
	return TopicsOf(repute.KindValidationRequest, repute.KindValidationResponse,
		repute.KindUpgraded, repute.KindInitialized, repute.KindOwnershipTransferred)
}

// TopicsOf lists the first topics of events of these kinds, in their order.
func TopicsOf(kinds ...repute.EventKind) []common.Hash {
	topics := make([]common.Hash, len(kinds))
	for i, kind := range kinds {
		topics[i] = Topic(kind)
	}
	return topics
}
