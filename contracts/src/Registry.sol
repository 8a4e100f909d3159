// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {OwnableUpgradeable} from "@openzeppelin/contracts-upgradeable/access/OwnableUpgradeable.sol";
import {UUPSUpgradeable} from "@openzeppelin/contracts-upgradeable/proxy/utils/UUPSUpgradeable.sol";

/// @title What the three registries share: a UUPS implementation whose upgrades belong to the proxy's owner.
/// @dev Declares no state, so that a derived contract decides alone what lies at slot 0.
abstract contract Registry is OwnableUpgradeable, UUPSUpgradeable {
    /// @dev The implementation itself can never be initialised; only a proxy in front of it can.
    constructor() {
        _disableInitializers();
    }

    /// @notice Version of the registry's external behaviour.
    function getVersion() external pure returns (string memory) {
        return "2.0.0";
    }

    function _authorizeUpgrade(address newImplementation) internal override onlyOwner {}
}
