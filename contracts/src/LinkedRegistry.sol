// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {Registry} from "./Registry.sol";

/// @notice The part of the Identity Registry that the other two registries call.
interface IAgentIdentity {
    function isAuthorizedOrOwner(address spender, uint256 agentId) external view returns (bool);
}

/// @title A registry whose entries are about agents of one Identity Registry.
abstract contract LinkedRegistry is Registry {
    /// @dev Slot 0 of the proxy. Everything else lives in ERC-7201 namespaces.
    address private _identityRegistry;

    /// @notice Second initialisation of the proxy, after the bootstrap implementation gave it an owner.
    function initialize(address identityRegistry_) external reinitializer(2) onlyOwner {
        require(identityRegistry_ != address(0), "bad identity");
        _identityRegistry = identityRegistry_;
    }

    /// @notice The Identity Registry that agent ids refer to.
    function getIdentityRegistry() external view returns (address) {
        return _identityRegistry;
    }

    /// @dev Reverts with ERC721NonexistentToken for an unknown agent.
    function _controls(address account, uint256 agentId) internal view returns (bool) {
        return IAgentIdentity(_identityRegistry).isAuthorizedOrOwner(account, agentId);
    }
}
