// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {Address} from "@openzeppelin/contracts/utils/Address.sol";

/// @title A token that can be told to misbehave: to take more than it is asked for, or to call somebody while it moves.
contract TestToken is ERC20 {
    uint256 private _extra;
    address private _callee;
    bytes private _data;

    constructor() ERC20("Test", "TST") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    /// @notice Burns so much of the sender's beside each transfer.
    function takeExtra(uint256 extra) external {
        _extra = extra;
    }

    /// @notice Makes this call in the middle of each transfer.
    function callback(address callee, bytes calldata data) external {
        (_callee, _data) = (callee, data);
    }

    function transfer(address to, uint256 amount) public override returns (bool) {
        if (_extra > 0) _burn(msg.sender, _extra);
        if (_callee != address(0)) Address.functionCall(_callee, _data);
        return super.transfer(to, amount);
    }
}
