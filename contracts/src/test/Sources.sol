// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

/// @title Attestations with the events and the record of the Ethereum Attestation Service. Anybody attests.
contract Attestations {
    struct Attestation {
        bytes32 uid;
        bytes32 schema;
        uint64 time;
        uint64 expirationTime;
        uint64 revocationTime;
        bytes32 refUID;
        address recipient;
        address attester;
        bool revocable;
        bytes data;
    }

    event Attested(address indexed recipient, address indexed attester, bytes32 uid, bytes32 indexed schemaUID);
    event Revoked(address indexed recipient, address indexed attester, bytes32 uid, bytes32 indexed schemaUID);

    mapping(bytes32 uid => Attestation) private _records;
    mapping(address recipient => mapping(bytes32 schema => bytes32 uid)) public getAttestationUid;
    uint256 private _count;

    function attest(bytes32 schema, address recipient, uint64 expires, bytes calldata data) external returns (bytes32 uid) {
        uid = keccak256(abi.encode(++_count));
        _records[uid] = Attestation(
            uid, schema, uint64(block.timestamp), expires, 0, 0, recipient, msg.sender, true, data
        );
        getAttestationUid[recipient][schema] = uid;
        emit Attested(recipient, msg.sender, uid, schema);
    }

    function revoke(bytes32 uid) external {
        Attestation storage record = _records[uid];
        require(record.attester == msg.sender && record.revocationTime == 0, "not yours");
        record.revocationTime = uint64(block.timestamp);
        emit Revoked(record.recipient, msg.sender, uid, record.schema);
    }

    function getAttestation(bytes32 uid) external view returns (Attestation memory) {
        return _records[uid];
    }
}

/// @title A book of persons in which anybody binds any address, again and again.
contract Book {
    event AgentRegistered(address indexed agent, uint256 indexed humanId);

    mapping(address agent => uint256 humanId) public lookupHuman;

    function register(address agent, uint256 humanId) external {
        lookupHuman[agent] = humanId;
        emit AgentRegistered(agent, humanId);
    }
}

/// @title A token that is bound to its holder, one for each.
contract BoundToken {
    event Attest(address indexed to, uint256 indexed tokenId);
    event Revoke(address indexed from, uint256 indexed tokenId);
    event Burn(address indexed from, uint256 indexed tokenId);

    mapping(address holder => uint256 tokenId) private _tokens;
    uint256 private _count;

    function attest(address to) external {
        require(_tokens[to] == 0, "has one");
        emit Attest(to, _tokens[to] = ++_count);
    }

    function revoke(address from) external {
        emit Revoke(from, _tokens[from]);
        delete _tokens[from];
    }

    function burn() external {
        emit Burn(msg.sender, _tokens[msg.sender]);
        delete _tokens[msg.sender];
    }

    function balanceOf(address holder) external view returns (uint256) {
        return _tokens[holder] == 0 ? 0 : 1;
    }

    function tokenIdOf(address holder) external view returns (uint256) {
        require(_tokens[holder] != 0, "has none");
        return _tokens[holder];
    }
}

/// @title Names that are bought and sold.
contract Names {
    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);

    mapping(address owner => uint256 count) public balanceOf;
    mapping(uint256 tokenId => address owner) private _owners;

    function give(address to, uint256 tokenId) external {
        address from = _owners[tokenId];
        if (from != address(0)) {
            balanceOf[from]--;
        }
        balanceOf[to]++;
        _owners[tokenId] = to;
        emit Transfer(from, to, tokenId);
    }
}

/// @title A proxy with the slot of ERC-1967 that anybody upgrades.
contract OpenProxy {
    bytes32 private constant _SLOT = bytes32(uint256(keccak256("eip1967.proxy.implementation")) - 1);

    constructor(address implementation) {
        upgrade(implementation);
    }

    function upgrade(address implementation) public {
        bytes32 slot = _SLOT;
        assembly {
            sstore(slot, implementation)
        }
    }

    fallback() external {
        bytes32 slot = _SLOT;
        assembly {
            calldatacopy(0, 0, calldatasize())
            let ok := delegatecall(gas(), sload(slot), 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            switch ok
            case 0 { revert(0, returndatasize()) }
            default { return(0, returndatasize()) }
        }
    }
}
