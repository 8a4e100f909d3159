// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {Address} from "@openzeppelin/contracts/utils/Address.sol";

/// @title A payee that can be told to call somebody when it is paid, and that counts what it gets.
contract Payee {
    address private _callee;
    bytes private _data;
    uint256 public received;

    function callback(address callee, bytes calldata data) external {
        (_callee, _data) = (callee, data);
    }

    function pay(uint256) external payable {
        _take();
    }

    function fail() external pure {
        revert("payee fails");
    }

    receive() external payable {
        _take();
    }

    function _take() private {
        received += msg.value;
        if (_callee != address(0)) Address.functionCall(_callee, _data);
    }
}
