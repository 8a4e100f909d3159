// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title A pool that gives a receipt token for what is supplied, and burns it without an allowance, as Aave's does.
contract LendingPool {
    Receipt public immutable receipt = new Receipt();

    function supply(address asset, uint256 amount, address onBehalfOf, uint16) external {
        IERC20(asset).transferFrom(msg.sender, address(this), amount);
        receipt.mint(onBehalfOf, amount);
    }

    function withdraw(address asset, uint256 amount, address to) external returns (uint256) {
        receipt.burn(msg.sender, amount);
        IERC20(asset).transfer(to, amount);
        return amount;
    }
}

contract Receipt is ERC20 {
    address private immutable _pool = msg.sender;

    constructor() ERC20("Receipt", "RCT") {}

    function mint(address to, uint256 amount) external {
        require(msg.sender == _pool, "not the pool");
        _mint(to, amount);
    }

    function burn(address from, uint256 amount) external {
        require(msg.sender == _pool, "not the pool");
        _burn(from, amount);
    }
}
