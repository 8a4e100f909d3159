// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Address} from "@openzeppelin/contracts/utils/Address.sol";
import {Errors} from "@openzeppelin/contracts/utils/Errors.sol";
import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";
import {ReentrancyGuard} from "@openzeppelin/contracts/utils/ReentrancyGuard.sol";

/// @title One treasury for many agents: each moves no more than its owner allows, per transaction and per window.
/// @dev Agents are named by agentKey, the keccak256 of their slug. Everything is refused that the owner has not
///      allowed: native coin and calls leave by executeCall to allowed pairs of target and selector, tokens by
///      transferERC20.
///
///      Caps of a token hold because executeCall never calls a token that is listed, and a contract that the treasury
///      has ever called cannot be listed as a token: no allowance, operator or share of the treasury can be left from
///      before. What the caps do not bound: contracts that may move a token of the treasury without its allowance (a
///      lending pool that burns its own receipts, a token's administrator). A pair that names such a contract gives its
///      agent all that the function can take. The same holds for pairs that name a token that is not listed.
///
///      Windows slide: what an agent moves within windowDurationSeconds never exceeds the cap, wherever the period
///      begins.
contract OpenFiTreasury is Ownable2Step, Pausable, ReentrancyGuard {
    using SafeERC20 for IERC20;

    /// @dev Eight buckets cover a window with the part that the oldest reaches beyond it, and one is being written.
    uint256 private constant BUCKETS = 9;

    /// @notice What an agent may do with native coin.
    struct AgentPolicy {
        bool active;
        address operator;
        /// Counts the operators that the agent has had. Relayers are approved for one of them.
        uint64 operatorEpoch;
        uint256 nativePerTxCapWei;
        uint256 nativeWindowCapWei;
        uint256 windowDurationSeconds;
    }

    /// @dev Movements whose times are less than an eighth of a window apart. They count until the last one is as old as
    ///      the window is long.
    struct Bucket {
        uint40 first;
        uint40 last;
        uint176 amount;
    }

    /// @dev A ring, written in the order of time.
    struct Window {
        uint256 newest;
        Bucket[BUCKETS] buckets;
    }

    /// @dev What the treasury knows about a contract.
    enum Kind {
        Unknown,
        Called,
        Token
    }

    uint256 public constant DEFAULT_WINDOW_SECONDS = 86400;
    /// @dev A longer one would never end.
    uint256 public constant MAX_WINDOW_SECONDS = 3660 days;
    /// @notice executeCall returns no more of what its target returns, and reverts with no more of its reason.
    uint256 public constant MAX_RETURN_BYTES = 4096;

    mapping(bytes32 agentKey => AgentPolicy) public agentPolicies;
    /// @notice What an agent may call; the selector 0x00000000 is a payment without data.
    mapping(bytes32 agentKey => mapping(address target => mapping(bytes4 selector => bool))) public allowedCalls;
    mapping(bytes32 agentKey => mapping(address token => bool)) public allowedTokens;
    mapping(bytes32 agentKey => mapping(address token => uint256)) public erc20PerTxCaps;
    mapping(bytes32 agentKey => mapping(address token => uint256)) public erc20WindowCaps;
    mapping(bytes32 agentKey => Window) private _nativeWindows;
    mapping(bytes32 agentKey => mapping(address token => Window)) private _erc20Windows;
    mapping(bytes32 agentKey => mapping(uint64 operatorEpoch => mapping(address relayer => bool))) private _relayers;
    mapping(address at => Kind) private _kinds;

    /// @param caller the operator, or the relayer that executed in its place
    event NativeExecuted(
        bytes32 indexed agentKey,
        address indexed operator,
        address indexed target,
        address caller,
        uint256 value,
        bytes4 selector,
        bytes32 runId,
        bytes32 taskId,
        string purpose
    );
    /// @param caller the operator, or the relayer that executed in its place
    event ERC20Transferred(
        bytes32 indexed agentKey,
        address indexed operator,
        address indexed token,
        address caller,
        address to,
        uint256 amount,
        bytes32 runId,
        bytes32 taskId,
        string purpose
    );
    event Deposited(address indexed from, uint256 value);
    event PolicySet(
        bytes32 indexed agentKey,
        address indexed operator,
        bool active,
        uint256 nativePerTxCapWei,
        uint256 nativeWindowCapWei,
        uint256 windowDurationSeconds
    );
    event CallAllowed(bytes32 indexed agentKey, address indexed target, bytes4 indexed selector, bool allowed);
    event TokenPolicySet(
        bytes32 indexed agentKey,
        address indexed token,
        bool allowed,
        uint256 perTxCap,
        uint256 windowCap
    );
    event RelayerApproved(bytes32 indexed agentKey, address indexed operator, address indexed relayer, bool approved);
    event Withdrawn(address indexed token, address indexed to, uint256 amount);

    error Inactive(bytes32 agentKey);
    error NotOperator(bytes32 agentKey, address caller);
    error BadOperator();
    error BadWindow(uint256 seconds_);
    error BadTarget(address target);
    error BadData(uint256 length);
    error BadRecipient(address to);
    error CallNotAllowed(bytes32 agentKey, address target, bytes4 selector);
    error TokenNotAllowed(bytes32 agentKey, address token);
    error TokenCall(address target, bytes4 selector);
    error TokenWasCalled(address token);
    error OverTransactionCap(uint256 amount, uint256 cap);
    error OverWindowCap(uint256 amount, uint256 left);
    error TokenTookMore(address token, uint256 taken, uint256 amount);
    error OwnerNeeded();

    constructor(address owner_) Ownable(owner_) {}

    receive() external payable {
        emit Deposited(msg.sender, msg.value);
    }

    // --- what agents do

    /// @notice Calls `target` with native coin for an agent.
    /// @dev runId and taskId are the keccak256 of the run's and the task's ids. A revert of the target is passed on.
    /// @return result what the target returned, at most MAX_RETURN_BYTES of it
    function executeCall(
        bytes32 agentKey,
        address target,
        uint256 value,
        bytes calldata data,
        bytes32 runId,
        bytes32 taskId,
        string calldata purpose
    ) external whenNotPaused nonReentrant returns (bytes memory result) {
        AgentPolicy storage p = _authorized(agentKey);
        bytes4 selector = _checkCall(agentKey, target, data);
        if (value > p.nativePerTxCapWei) revert OverTransactionCap(value, p.nativePerTxCapWei);
        _spend(_nativeWindows[agentKey], p.windowDurationSeconds, p.nativeWindowCapWei, value);
        emit NativeExecuted(agentKey, p.operator, target, msg.sender, value, selector, runId, taskId, purpose);
        return _call(target, value, data);
    }

    /// @notice Moves tokens for an agent.
    function transferERC20(
        bytes32 agentKey,
        address token,
        address to,
        uint256 amount,
        bytes32 runId,
        bytes32 taskId,
        string calldata purpose
    ) external whenNotPaused nonReentrant {
        AgentPolicy storage p = _authorized(agentKey);
        if (!allowedTokens[agentKey][token]) revert TokenNotAllowed(agentKey, token);
        if (to == address(0) || to == address(this) || to == token) revert BadRecipient(to);
        uint256 cap = erc20PerTxCaps[agentKey][token];
        if (amount > cap) revert OverTransactionCap(amount, cap);
        _spend(_erc20Windows[agentKey][token], p.windowDurationSeconds, erc20WindowCaps[agentKey][token], amount);
        emit ERC20Transferred(agentKey, p.operator, token, msg.sender, to, amount, runId, taskId, purpose);
        uint256 before = IERC20(token).balanceOf(address(this));
        IERC20(token).safeTransfer(to, amount);
        uint256 rest = IERC20(token).balanceOf(address(this));
        if (rest < before && before - rest > amount) revert TokenTookMore(token, before - rest, amount);
    }

    // --- what an agent may still do

    /// @notice Native coin that counts against an agent's cap now, and since when it was moved. start is 0 when none
    ///         was.
    function nativeWindow(bytes32 agentKey) external view returns (uint256 start, uint256 spent) {
        return _counted(_nativeWindows[agentKey], agentPolicies[agentKey].windowDurationSeconds);
    }

    /// @notice Amount of a token that counts against an agent's cap now, and since when it was moved. start is 0 when
    ///         none was.
    function erc20Window(bytes32 agentKey, address token) external view returns (uint256 start, uint256 spent) {
        return _counted(_erc20Windows[agentKey][token], agentPolicies[agentKey].windowDurationSeconds);
    }

    /// @notice Native coin that an agent may still move now, whatever the treasury holds.
    function nativeLeft(bytes32 agentKey) external view returns (uint256) {
        AgentPolicy storage p = agentPolicies[agentKey];
        if (!p.active || paused()) return 0;
        uint256 left = _left(_nativeWindows[agentKey], p.windowDurationSeconds, p.nativeWindowCapWei);
        return _least(p.nativePerTxCapWei, left);
    }

    /// @notice Amount of a token that an agent may still move now, whatever the treasury holds.
    function erc20Left(bytes32 agentKey, address token) external view returns (uint256) {
        AgentPolicy storage p = agentPolicies[agentKey];
        if (!p.active || paused() || !allowedTokens[agentKey][token]) return 0;
        uint256 cap = erc20WindowCaps[agentKey][token];
        uint256 left = _left(_erc20Windows[agentKey][token], p.windowDurationSeconds, cap);
        return _least(erc20PerTxCaps[agentKey][token], left);
    }

    /// @notice Whether a relayer may execute for an agent's present operator.
    function approvedRelayers(bytes32 agentKey, address relayer) public view returns (bool) {
        return _relayers[agentKey][agentPolicies[agentKey].operatorEpoch][relayer];
    }

    /// @notice Whether any agent was ever allowed this token: nobody calls it by executeCall.
    function knownTokens(address token) external view returns (bool) {
        return _kinds[token] == Kind.Token;
    }

    /// @notice Whether executeCall has called this contract: it cannot be listed as a token.
    function calledContracts(address at) external view returns (bool) {
        return _kinds[at] == Kind.Called;
    }

    // --- what the owner does

    /// @notice Sets an agent's policy. What it has moved stays counted; another duration applies to what was moved
    ///         before as well, as far back as the treasury remembers, which is never less than the former duration.
    ///         Another operator ends the approvals of all relayers.
    /// @param windowDurationSeconds 0 for a day
    function setPolicy(
        bytes32 agentKey,
        bool active,
        address operator,
        uint256 nativePerTxCapWei,
        uint256 nativeWindowCapWei,
        uint256 windowDurationSeconds
    ) external onlyOwner {
        if (operator == address(this) || (active && operator == address(0))) revert BadOperator();
        if (windowDurationSeconds == 0) windowDurationSeconds = DEFAULT_WINDOW_SECONDS;
        if (windowDurationSeconds > MAX_WINDOW_SECONDS) revert BadWindow(windowDurationSeconds);
        AgentPolicy storage p = agentPolicies[agentKey];
        if (operator != p.operator) p.operatorEpoch++;
        p.active = active;
        p.operator = operator;
        p.nativePerTxCapWei = nativePerTxCapWei;
        p.nativeWindowCapWei = nativeWindowCapWei;
        p.windowDurationSeconds = windowDurationSeconds;
        emit PolicySet(agentKey, operator, active, nativePerTxCapWei, nativeWindowCapWei, windowDurationSeconds);
    }

    /// @notice Allows an agent to call a function of a target, or no longer. The selector 0x00000000 is a payment
    ///         without data, and nothing else.
    function setCall(bytes32 agentKey, address target, bytes4 selector, bool allowed) external onlyOwner {
        if (target == address(0) || target == address(this)) revert BadTarget(target);
        if (allowed && _kinds[target] == Kind.Token) revert TokenCall(target, selector);
        allowedCalls[agentKey][target][selector] = allowed;
        emit CallAllowed(agentKey, target, selector, allowed);
    }

    /// @notice Sets what an agent may move of a token. What it has moved stays counted.
    /// @dev A contract that the treasury has called is refused for ever: the call may have left an allowance, which no
    ///      contract can list, and which would pass by the caps. Listing a token ends all calls of it, for all agents.
    function setToken(
        bytes32 agentKey,
        address token,
        bool allowed,
        uint256 perTxCap,
        uint256 windowCap
    ) external onlyOwner {
        if (token == address(0) || token == address(this)) revert BadTarget(token);
        if (allowed && _kinds[token] == Kind.Called) revert TokenWasCalled(token);
        allowedTokens[agentKey][token] = allowed;
        erc20PerTxCaps[agentKey][token] = perTxCap;
        erc20WindowCaps[agentKey][token] = windowCap;
        if (allowed) _kinds[token] = Kind.Token;
        emit TokenPolicySet(agentKey, token, allowed, perTxCap, windowCap);
    }

    /// @notice Approves a relayer to execute for one agent, as long as it has its present operator, or no longer.
    function setRelayer(bytes32 agentKey, address relayer, bool approved) external onlyOwner {
        AgentPolicy storage p = agentPolicies[agentKey];
        if (p.operator == address(0)) revert BadOperator();
        _relayers[agentKey][p.operatorEpoch][relayer] = approved;
        emit RelayerApproved(agentKey, p.operator, relayer, approved);
    }

    /// @notice Stops all agents. The owner can still withdraw.
    function pause() external onlyOwner {
        _pause();
    }

    function unpause() external onlyOwner {
        _unpause();
    }

    /// @notice Takes native coin out.
    function withdraw(address payable to, uint256 amount) external onlyOwner nonReentrant {
        if (to == address(0)) revert BadRecipient(to);
        emit Withdrawn(address(0), to, amount);
        _call(to, amount, msg.data[:0]);
    }

    /// @notice Takes tokens out.
    function withdrawERC20(address token, address to, uint256 amount) external onlyOwner nonReentrant {
        if (to == address(0)) revert BadRecipient(to);
        emit Withdrawn(token, to, amount);
        IERC20(token).safeTransfer(to, amount);
    }

    /// @notice Always fails: without an owner the funds would be stuck behind the caps.
    function renounceOwnership() public view override onlyOwner {
        revert OwnerNeeded();
    }

    // --- rules

    function _authorized(bytes32 agentKey) private view returns (AgentPolicy storage p) {
        p = agentPolicies[agentKey];
        if (!p.active) revert Inactive(agentKey);
        bool known = msg.sender == p.operator || approvedRelayers(agentKey, msg.sender);
        if (!known) revert NotOperator(agentKey, msg.sender);
    }

    /// @dev Checks what may be called, and remembers every contract that is.
    function _checkCall(bytes32 agentKey, address target, bytes calldata data) private returns (bytes4 selector) {
        if (target == address(0) || target == address(this)) revert BadTarget(target);
        if (data.length > 0) {
            if (data.length < 4 || bytes4(data[:4]) == 0) revert BadData(data.length);
            selector = bytes4(data[:4]);
        }
        Kind kind = _kinds[target];
        if (kind == Kind.Token) revert TokenCall(target, selector);
        if (!allowedCalls[agentKey][target][selector]) revert CallNotAllowed(agentKey, target, selector);
        bool code = target.code.length > 0;
        if (data.length > 0 && !code) revert Address.AddressEmptyCode(target);
        if (code && kind == Kind.Unknown) _kinds[target] = Kind.Called;
    }

    /// @dev Takes no more of the answer than is bounded: whoever pays for the gas does not pay for copying the rest.
    function _call(address target, uint256 value, bytes calldata data) private returns (bytes memory result) {
        if (address(this).balance < value) revert Errors.InsufficientBalance(address(this).balance, value);
        uint256 most = MAX_RETURN_BYTES;
        bool done;
        assembly ("memory-safe") {
            result := mload(0x40)
            calldatacopy(result, data.offset, data.length)
            done := call(gas(), target, value, result, data.length, 0, 0)
            let size := returndatasize()
            if gt(size, most) {
                size := most
            }
            mstore(result, size)
            returndatacopy(add(result, 0x20), 0, size)
            mstore(0x40, add(result, and(add(size, 0x3f), not(0x1f))))
        }
        if (done) return result;
        if (result.length == 0) revert Errors.FailedCall();
        assembly ("memory-safe") {
            revert(add(result, 0x20), mload(result))
        }
    }

    // --- windows

    /// @dev Counts an amount against a cap, or reverts.
    function _spend(Window storage w, uint256 duration, uint256 cap, uint256 amount) private {
        uint256 left = _left(w, duration, cap);
        if (amount > left) revert OverWindowCap(amount, left);
        if (amount == 0) return;
        Bucket storage b = w.buckets[w.newest];
        uint256 next = (w.newest + 1) % BUCKETS;
        //      The width is rounded up, so that the next bucket still counts only after the duration was made longer.
        //      Then the newest one takes more, and counts for longer than it must.
        uint256 width = (duration + BUCKETS - 2) / (BUCKETS - 1);
        if (_counts(b, duration) && (block.timestamp < b.first + width || _counts(w.buckets[next], duration))) {
            b.last = uint40(block.timestamp);
            b.amount += uint176(amount);
            return;
        }
        w.newest = next;
        w.buckets[next] = Bucket(uint40(block.timestamp), uint40(block.timestamp), uint176(amount));
    }

    function _counts(Bucket storage b, uint256 duration) private view returns (bool) {
        return b.last > 0 && block.timestamp < b.last + duration;
    }

    /// @dev What of a window counts now, from the newest bucket back to the first that does not.
    function _counted(Window storage w, uint256 duration) private view returns (uint256 start, uint256 spent) {
        for (uint256 i = 0; i < BUCKETS; i++) {
            Bucket storage b = w.buckets[(w.newest + BUCKETS - i) % BUCKETS];
            if (!_counts(b, duration)) break;
            start = b.first;
            spent += b.amount;
        }
    }

    /// @dev Never more than a bucket can hold.
    function _left(Window storage w, uint256 duration, uint256 cap) private view returns (uint256) {
        (, uint256 spent) = _counted(w, duration);
        cap = _least(cap, type(uint176).max);
        return spent < cap ? cap - spent : 0;
    }

    function _least(uint256 a, uint256 b) private pure returns (uint256) {
        return a < b ? a : b;
    }
}
