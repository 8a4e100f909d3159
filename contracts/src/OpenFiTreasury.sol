// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Address} from "@openzeppelin/contracts/utils/Address.sol";
import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";
import {ReentrancyGuard} from "@openzeppelin/contracts/utils/ReentrancyGuard.sol";

/// @title One treasury for many agents: each moves no more than its owner allows, per transaction and per window.
/// @dev Agents are named by agentKey, the keccak256 of their slug. Native coin leaves by executeCall, tokens by
///      transferERC20; executeCall refuses whatever would move tokens past their caps.
contract OpenFiTreasury is Ownable2Step, Pausable, ReentrancyGuard {
    using SafeERC20 for IERC20;

    /// @notice What an agent may do with native coin, and what it has done in the present window.
    struct AgentPolicy {
        bool active;
        address operator;
        uint256 nativePerTxCapWei;
        uint256 nativeWindowCapWei;
        uint256 windowDurationSeconds;
        uint256 nativeWindowStart;
        uint256 nativeWindowSpentWei;
        bool requireTargetAllowlist;
        bool requireSelectorAllowlist;
    }

    /// @notice What an agent has moved of one token in the present window.
    struct TokenWindow {
        uint256 start;
        uint256 spent;
    }

    uint256 public constant DEFAULT_WINDOW_SECONDS = 86400;
    /// @dev A longer one would never end.
    uint256 public constant MAX_WINDOW_SECONDS = 3660 days;

    mapping(bytes32 agentKey => AgentPolicy) public agentPolicies;
    mapping(bytes32 agentKey => mapping(address target => bool)) public allowedTargets;
    mapping(bytes32 agentKey => mapping(bytes4 selector => bool)) public allowedSelectors;
    mapping(bytes32 agentKey => mapping(address token => bool)) public allowedTokens;
    mapping(bytes32 agentKey => mapping(address token => uint256)) public erc20PerTxCaps;
    mapping(bytes32 agentKey => mapping(address token => uint256)) public erc20WindowCaps;
    mapping(bytes32 agentKey => mapping(address token => TokenWindow)) public erc20Windows;
    mapping(bytes32 agentKey => mapping(address relayer => bool)) public approvedRelayers;
    /// @notice Tokens that any agent was ever allowed: nobody calls them by executeCall.
    mapping(address token => bool) public knownTokens;

    event NativeExecuted(
        bytes32 indexed agentKey,
        address indexed operator,
        address indexed target,
        uint256 value,
        bytes4 selector,
        bytes32 runId,
        bytes32 taskId,
        string purpose
    );
    event ERC20Transferred(
        bytes32 indexed agentKey,
        address indexed operator,
        address indexed token,
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
        uint256 windowDurationSeconds,
        bool requireTargetAllowlist,
        bool requireSelectorAllowlist
    );
    event TargetAllowed(bytes32 indexed agentKey, address indexed target, bool allowed);
    event SelectorAllowed(bytes32 indexed agentKey, bytes4 indexed selector, bool allowed);
    event TokenPolicySet(bytes32 indexed agentKey, address indexed token, bool allowed, uint256 perTxCap, uint256 windowCap);
    event RelayerApproved(bytes32 indexed agentKey, address indexed relayer, bool approved);
    event Withdrawn(address indexed token, address indexed to, uint256 amount);

    error Inactive(bytes32 agentKey);
    error NotOperator(bytes32 agentKey, address caller);
    error BadOperator();
    error BadWindow(uint256 seconds_);
    error BadTarget(address target);
    error BadData(uint256 length);
    error BadRecipient(address to);
    error TargetNotAllowed(bytes32 agentKey, address target);
    error SelectorNotAllowed(bytes32 agentKey, bytes4 selector);
    error TokenNotAllowed(bytes32 agentKey, address token);
    error TokenCall(address target, bytes4 selector);
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
        bytes4 selector = _checkCall(agentKey, p, target, data);
        if (value > p.nativePerTxCapWei) revert OverTransactionCap(value, p.nativePerTxCapWei);
        resetNativeWindowIfNeeded(agentKey);
        uint256 left = _left(p.nativeWindowCapWei, p.nativeWindowSpentWei);
        if (value > left) revert OverWindowCap(value, left);
        p.nativeWindowSpentWei += value;
        emit NativeExecuted(agentKey, p.operator, target, value, selector, runId, taskId, purpose);
        if (data.length == 0) {
            Address.sendValue(payable(target), value);
        } else {
            // Refuses a target without code.
            result = Address.functionCallWithValue(target, data, value);
        }
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
        resetERC20WindowIfNeeded(agentKey, token);
        TokenWindow storage w = erc20Windows[agentKey][token];
        uint256 left = _left(erc20WindowCaps[agentKey][token], w.spent);
        if (amount > left) revert OverWindowCap(amount, left);
        w.spent += amount;
        emit ERC20Transferred(agentKey, p.operator, token, to, amount, runId, taskId, purpose);
        uint256 before = IERC20(token).balanceOf(address(this));
        IERC20(token).safeTransfer(to, amount);
        uint256 rest = IERC20(token).balanceOf(address(this));
        if (rest < before && before - rest > amount) revert TokenTookMore(token, before - rest, amount);
    }

    /// @notice Opens a new window for native coin when the present one has expired. Does nothing earlier.
    function resetNativeWindowIfNeeded(bytes32 agentKey) public {
        AgentPolicy storage p = agentPolicies[agentKey];
        if (_expired(p, p.nativeWindowStart)) {
            p.nativeWindowStart = block.timestamp;
            p.nativeWindowSpentWei = 0;
        }
    }

    /// @notice Opens a new window for a token when the present one has expired. Does nothing earlier.
    function resetERC20WindowIfNeeded(bytes32 agentKey, address token) public {
        TokenWindow storage w = erc20Windows[agentKey][token];
        if (_expired(agentPolicies[agentKey], w.start)) {
            w.start = block.timestamp;
            w.spent = 0;
        }
    }

    // --- what an agent may still do

    /// @notice Native coin that an agent may still move now, whatever the treasury holds.
    function nativeLeft(bytes32 agentKey) external view returns (uint256) {
        AgentPolicy storage p = agentPolicies[agentKey];
        if (!p.active || paused()) return 0;
        return _least(p.nativePerTxCapWei, _left(p.nativeWindowCapWei, _expired(p, p.nativeWindowStart) ? 0 : p.nativeWindowSpentWei));
    }

    /// @notice Amount of a token that an agent may still move now, whatever the treasury holds.
    function erc20Left(bytes32 agentKey, address token) external view returns (uint256) {
        AgentPolicy storage p = agentPolicies[agentKey];
        if (!p.active || paused() || !allowedTokens[agentKey][token]) return 0;
        TokenWindow storage w = erc20Windows[agentKey][token];
        return _least(erc20PerTxCaps[agentKey][token], _left(erc20WindowCaps[agentKey][token], _expired(p, w.start) ? 0 : w.spent));
    }

    // --- what the owner does

    /// @notice Sets an agent's policy. What it has spent in the present window stays spent.
    /// @param windowDurationSeconds 0 for a day
    function setPolicy(
        bytes32 agentKey,
        bool active,
        address operator,
        uint256 nativePerTxCapWei,
        uint256 nativeWindowCapWei,
        uint256 windowDurationSeconds,
        bool requireTargetAllowlist,
        bool requireSelectorAllowlist
    ) external onlyOwner {
        if (operator == address(this) || (active && operator == address(0))) revert BadOperator();
        if (windowDurationSeconds == 0) windowDurationSeconds = DEFAULT_WINDOW_SECONDS;
        if (windowDurationSeconds > MAX_WINDOW_SECONDS) revert BadWindow(windowDurationSeconds);
        AgentPolicy storage p = agentPolicies[agentKey];
        p.active = active;
        p.operator = operator;
        p.nativePerTxCapWei = nativePerTxCapWei;
        p.nativeWindowCapWei = nativeWindowCapWei;
        p.windowDurationSeconds = windowDurationSeconds;
        p.requireTargetAllowlist = requireTargetAllowlist;
        p.requireSelectorAllowlist = requireSelectorAllowlist;
        emit PolicySet(
            agentKey,
            operator,
            active,
            nativePerTxCapWei,
            nativeWindowCapWei,
            windowDurationSeconds,
            requireTargetAllowlist,
            requireSelectorAllowlist
        );
    }

    /// @notice Allows an agent to call a target, or no longer.
    function setTarget(bytes32 agentKey, address target, bool allowed) external onlyOwner {
        allowedTargets[agentKey][target] = allowed;
        emit TargetAllowed(agentKey, target, allowed);
    }

    /// @notice Allows an agent to call a function by its selector, or no longer; 0x00000000 is a call without data.
    function setSelector(bytes32 agentKey, bytes4 selector, bool allowed) external onlyOwner {
        allowedSelectors[agentKey][selector] = allowed;
        emit SelectorAllowed(agentKey, selector, allowed);
    }

    /// @notice Sets what an agent may move of a token. What it has moved in the present window stays counted.
    function setToken(bytes32 agentKey, address token, bool allowed, uint256 perTxCap, uint256 windowCap) external onlyOwner {
        if (token == address(0) || token == address(this)) revert BadTarget(token);
        allowedTokens[agentKey][token] = allowed;
        erc20PerTxCaps[agentKey][token] = perTxCap;
        erc20WindowCaps[agentKey][token] = windowCap;
        if (allowed) knownTokens[token] = true;
        emit TokenPolicySet(agentKey, token, allowed, perTxCap, windowCap);
    }

    /// @notice Approves a relayer to execute for one agent, or no longer.
    function setRelayer(bytes32 agentKey, address relayer, bool approved) external onlyOwner {
        approvedRelayers[agentKey][relayer] = approved;
        emit RelayerApproved(agentKey, relayer, approved);
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
        Address.sendValue(to, amount);
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
        if (msg.sender != p.operator && !approvedRelayers[agentKey][msg.sender]) revert NotOperator(agentKey, msg.sender);
    }

    /// @dev What may be called, and by which selector.
    function _checkCall(
        bytes32 agentKey,
        AgentPolicy storage p,
        address target,
        bytes calldata data
    ) private view returns (bytes4 selector) {
        if (target == address(0) || target == address(this)) revert BadTarget(target);
        if (data.length > 0 && data.length < 4) revert BadData(data.length);
        selector = data.length == 0 ? bytes4(0) : bytes4(data[:4]);
        if (knownTokens[target] || _movesTokens(selector)) revert TokenCall(target, selector);
        if (p.requireTargetAllowlist && !allowedTargets[agentKey][target]) revert TargetNotAllowed(agentKey, target);
        if (p.requireSelectorAllowlist && !allowedSelectors[agentKey][selector]) revert SelectorNotAllowed(agentKey, selector);
    }

    /// @dev Functions by which a holder moves tokens or lets others move them: ERC-20, 721, 1155, 777 and 1363. A token
    ///      that the treasury holds and nobody has listed must not leave it either.
    function _movesTokens(bytes4 s) private pure returns (bool) {
        return
            s == 0xa9059cbb || // transfer(address,uint256)
            s == 0x23b872dd || // transferFrom(address,address,uint256)
            s == 0x095ea7b3 || // approve(address,uint256)
            s == 0x39509351 || // increaseAllowance(address,uint256)
            s == 0xa22cb465 || // setApprovalForAll(address,bool)
            s == 0x42842e0e || // safeTransferFrom(address,address,uint256)
            s == 0xb88d4fde || // safeTransferFrom(address,address,uint256,bytes)
            s == 0xf242432a || // safeTransferFrom(address,address,uint256,uint256,bytes)
            s == 0x2eb2c2d6 || // safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)
            s == 0x42966c68 || // burn(uint256)
            s == 0x9bd9bbc6 || // send(address,uint256,bytes)
            s == 0x959b8c3f || // authorizeOperator(address)
            s == 0x1296ee62 || // transferAndCall(address,uint256)
            s == 0x4000aea0 || // transferAndCall(address,uint256,bytes)
            s == 0x3177029f || // approveAndCall(address,uint256)
            s == 0xcae9ca51; // approveAndCall(address,uint256,bytes)
    }

    function _expired(AgentPolicy storage p, uint256 start) private view returns (bool) {
        return block.timestamp >= start + p.windowDurationSeconds;
    }

    function _left(uint256 cap, uint256 spent) private pure returns (uint256) {
        return spent < cap ? cap - spent : 0;
    }

    function _least(uint256 a, uint256 b) private pure returns (uint256) {
        return a < b ? a : b;
    }
}
