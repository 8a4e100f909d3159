// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {Multicall} from "@openzeppelin/contracts/utils/Multicall.sol";

/// @title A token with the functions by which tokens in use let their holders move them, beside those of ERC-20.
contract WideToken is ERC20, Multicall {
    /// @dev As LayerZero's OFT has it.
    struct SendParam {
        uint32 dstEid;
        bytes32 to;
        uint256 amountLD;
        uint256 minAmountLD;
        bytes extraOptions;
        bytes composeMsg;
        bytes oftCmd;
    }

    struct MessagingFee {
        uint256 nativeFee;
        uint256 lzTokenFee;
    }

    constructor() ERC20("Wide", "WIDE") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    /// @dev DS-Token.
    function push(address to, uint256 amount) external {
        _transfer(msg.sender, to, amount);
    }

    /// @dev DS-Token.
    function move(address from, address to, uint256 amount) external {
        if (from != msg.sender) _spendAllowance(from, msg.sender, amount);
        _transfer(from, to, amount);
    }

    /// @dev Early OpenZeppelin.
    function increaseApproval(address spender, uint256 added) external returns (bool) {
        _approve(msg.sender, spender, allowance(msg.sender, spender) + added);
        return true;
    }

    /// @dev stETH, one share for one unit.
    function transferShares(address to, uint256 shares) external returns (uint256) {
        _transfer(msg.sender, to, shares);
        return shares;
    }

    /// @dev ERC20Wrapper: the holder's units are burned, and the account gets what they stand for.
    function withdrawTo(address account, uint256 amount) external returns (bool) {
        _burn(msg.sender, amount);
        _mint(account, amount);
        return true;
    }

    /// @dev OFT: burned here to be minted on another chain.
    function send(SendParam calldata p, MessagingFee calldata, address) external payable {
        _burn(msg.sender, p.amountLD);
    }

    /// @dev ERC-777.
    function burn(uint256 amount, bytes calldata) external {
        _burn(msg.sender, amount);
    }
}
