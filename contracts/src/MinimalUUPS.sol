// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {OwnableUpgradeable} from "@openzeppelin/contracts-upgradeable/access/OwnableUpgradeable.sol";
import {UUPSUpgradeable} from "@openzeppelin/contracts-upgradeable/proxy/utils/UUPSUpgradeable.sol";

/// @title First implementation behind every registry proxy: an owner and the right to upgrade, nothing else.
/// @dev The registries initialise as version 2 and only for an owner, so a proxy must pass through here first. The
///      same proxy creation code then serves all three registries, whose addresses can be fixed before their code is.
contract MinimalUUPS is OwnableUpgradeable, UUPSUpgradeable {
    constructor() {
        _disableInitializers();
    }

    /// @notice First initialisation of the proxy.
    function initialize(address owner_) external initializer {
        __Ownable_init(owner_);
    }

    /// @notice Tells a bootstrapped proxy from a finished one.
    function getVersion() external pure returns (string memory) {
        return "0.0.1";
    }

    function _authorizeUpgrade(address newImplementation) internal override onlyOwner {}
}
