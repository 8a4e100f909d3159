// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @title A token with six decimals that has no transfers by signature.
contract PlainToken is ERC20 {
    bool private _failing;

    constructor() ERC20("Plain", "PLN") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    /// @notice Makes transferFrom return false without moving anything.
    function fail(bool failing) external {
        _failing = failing;
    }

    function decimals() public pure override returns (uint8) {
        return 6;
    }

    function transferFrom(address from, address to, uint256 value) public override returns (bool) {
        return _failing ? false : super.transferFrom(from, to, value);
    }
}
