// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {ERC721URIStorageUpgradeable} from "@openzeppelin/contracts-upgradeable/token/ERC721/extensions/ERC721URIStorageUpgradeable.sol";
import {EIP712Upgradeable} from "@openzeppelin/contracts-upgradeable/utils/cryptography/EIP712Upgradeable.sol";
import {Registry} from "./Registry.sol";

/// @title ERC-8004 Identity Registry: an agent is an ERC-721 token with a URI, metadata and a proven wallet.
contract IdentityRegistry is ERC721URIStorageUpgradeable, EIP712Upgradeable, Registry {
    struct MetadataEntry {
        string metadataKey;
        bytes metadataValue;
    }

    /// @custom:storage-location erc7201:erc8004.identity.registry
    struct IdentityStorage {
        /// Number of agents, and thereby the next id.
        uint256 _lastId;
        mapping(uint256 agentId => mapping(string key => bytes value)) _metadata;
    }

    event Registered(uint256 indexed agentId, string agentURI, address indexed owner);
    event URIUpdated(uint256 indexed agentId, string newURI, address indexed updatedBy);
    event MetadataSet(
        uint256 indexed agentId,
        string indexed indexedMetadataKey,
        string metadataKey,
        bytes metadataValue
    );

    /// @dev keccak256(abi.encode(uint256(keccak256("erc8004.identity.registry")) - 1)) & ~bytes32(uint256(0xff))
    bytes32 private constant STORAGE_SLOT = 0xa040f782729de4970518741823ec1276cbcd41a0c7493f62d173341566a04e00;

    bytes32 private constant WALLET_TYPEHASH =
        keccak256("AgentWalletSet(uint256 agentId,address newWallet,address owner,uint256 deadline)");

    /// @dev How far ahead a wallet's consent may be dated. There is no nonce, so this bounds a replay.
    uint256 private constant MAX_CONSENT = 5 minutes;

    string private constant WALLET_KEY = "agentWallet";
    bytes32 private constant WALLET_KEY_HASH = keccak256(bytes(WALLET_KEY));

    /// @notice Second initialisation of the proxy, after the bootstrap implementation gave it an owner.
    function initialize() external reinitializer(2) onlyOwner {
        __ERC721_init("AgentIdentity", "AGENT");
        __EIP712_init("ERC8004IdentityRegistry", "1");
    }

    /// @notice Registers an agent without a URI.
    function register() external returns (uint256 agentId) {
        agentId = _mintAgent();
        _announce(agentId, "");
    }

    /// @notice Registers an agent with a registration file's URI, which may be empty.
    function register(string memory agentURI) external returns (uint256 agentId) {
        agentId = _mintAgent();
        _setTokenURI(agentId, agentURI);
        _announce(agentId, agentURI);
    }

    /// @notice Registers an agent with a URI and metadata.
    function register(
        string memory agentURI,
        MetadataEntry[] memory metadata
    ) external returns (uint256 agentId) {
        agentId = _mintAgent();
        _setTokenURI(agentId, agentURI);
        _announce(agentId, agentURI);
        for (uint256 i = 0; i < metadata.length; i++) {
            _requireFreeKey(metadata[i].metadataKey);
            _writeMetadata(agentId, metadata[i].metadataKey, metadata[i].metadataValue);
        }
    }

    /// @notice Replaces the agent's URI.
    function setAgentURI(uint256 agentId, string calldata newURI) external {
        _requireAuthorized(agentId);
        _setTokenURI(agentId, newURI);
        emit URIUpdated(agentId, newURI, msg.sender);
    }

    /// @notice Value of a metadata key; empty when unset or when the agent is unknown.
    function getMetadata(uint256 agentId, string memory metadataKey) external view returns (bytes memory) {
        return _store()._metadata[agentId][metadataKey];
    }

    /// @notice Sets a metadata key. The wallet key is reserved.
    function setMetadata(uint256 agentId, string memory metadataKey, bytes memory metadataValue) external {
        _requireAuthorized(agentId);
        _requireFreeKey(metadataKey);
        _writeMetadata(agentId, metadataKey, metadataValue);
    }

    /// @notice The agent's wallet; zero when unset or when the agent is unknown.
    function getAgentWallet(uint256 agentId) external view returns (address) {
        return address(bytes20(_store()._metadata[agentId][WALLET_KEY]));
    }

    /// @notice Sets the agent's wallet with the consent of that wallet, signed as EIP-712 typed data.
    function setAgentWallet(
        uint256 agentId,
        address newWallet,
        uint256 deadline,
        bytes calldata signature
    ) external {
        address agentOwner = _requireAuthorized(agentId);
        require(newWallet != address(0), "bad wallet");
        require(block.timestamp <= deadline, "expired");
        require(deadline <= block.timestamp + MAX_CONSENT, "deadline too far");
        bytes32 digest = _hashTypedDataV4(
            keccak256(abi.encode(WALLET_TYPEHASH, agentId, newWallet, agentOwner, deadline))
        );
        require(_consents(newWallet, digest, signature), "invalid wallet sig");
        _writeMetadata(agentId, WALLET_KEY, abi.encodePacked(newWallet));
    }

    /// @notice Clears the agent's wallet.
    function unsetAgentWallet(uint256 agentId) external {
        _requireAuthorized(agentId);
        _writeMetadata(agentId, WALLET_KEY, "");
    }

    /// @notice Whether the account may act for the agent: owner, operator or approved. Reverts for an unknown agent.
    function isAuthorizedOrOwner(address spender, uint256 agentId) external view returns (bool) {
        return _isAuthorized(ownerOf(agentId), spender, agentId);
    }

    /// @dev The wallet is stored before the mint and announced after it: a receiver that passes the token on inside
    ///      its callback thereby clears it for good.
    function _mintAgent() private returns (uint256 agentId) {
        IdentityStorage storage $ = _store();
        agentId = $._lastId++;
        $._metadata[agentId][WALLET_KEY] = abi.encodePacked(msg.sender);
        _safeMint(msg.sender, agentId);
    }

    function _announce(uint256 agentId, string memory agentURI) private {
        emit Registered(agentId, agentURI, msg.sender);
        emit MetadataSet(agentId, WALLET_KEY, WALLET_KEY, abi.encodePacked(msg.sender));
    }

    function _writeMetadata(uint256 agentId, string memory key, bytes memory value) private {
        _store()._metadata[agentId][key] = value;
        emit MetadataSet(agentId, key, key, value);
    }

    /// @dev A wallet consented to serve one owner, so every change of hands clears it, also one to the same hands.
    function _update(address to, uint256 tokenId, address auth) internal override returns (address) {
        if (to != address(0) && _ownerOf(tokenId) != address(0)) {
            _writeMetadata(tokenId, WALLET_KEY, "");
        }
        return super._update(to, tokenId, auth);
    }

    /// @dev An account with delegated code still signs with its key, so ECDSA is tried before ERC-1271.
    function _consents(address wallet, bytes32 digest, bytes calldata signature) private view returns (bool) {
        (address signer, ECDSA.RecoverError err, ) = ECDSA.tryRecover(digest, signature);
        if (err == ECDSA.RecoverError.NoError && signer == wallet) {
            return true;
        }
        (bool ok, bytes memory answer) = wallet.staticcall(
            abi.encodeCall(IERC1271.isValidSignature, (digest, signature))
        );
        return
            ok &&
            answer.length >= 32 &&
            abi.decode(answer, (bytes32)) == bytes32(IERC1271.isValidSignature.selector);
    }

    function _requireAuthorized(uint256 agentId) private view returns (address agentOwner) {
        agentOwner = ownerOf(agentId);
        require(_isAuthorized(agentOwner, msg.sender, agentId), "Not authorized");
    }

    function _requireFreeKey(string memory key) private pure {
        require(keccak256(bytes(key)) != WALLET_KEY_HASH, "reserved key");
    }

    function _store() private pure returns (IdentityStorage storage $) {
        assembly {
            $.slot := STORAGE_SLOT
        }
    }
}
