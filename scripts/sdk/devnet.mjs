// Writes to a devnet through the unmodified SDK of agent0 and reads all of it back through the subgraph of an index that
// follows the devnet: registrations, an update, ratings (below zero, with decimals), an answer, a revocation, lists, pages.
// Arguments: URL of the index, URL of the node, private key of an account with ether.
import assert from 'node:assert/strict'
import { SDK } from 'agent0-sdk'
import { createPublicClient, createWalletClient, http, keccak256, parseEther, stringToHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'

const [index, rpcUrl, faucetKey] = process.argv.slice(2)
const reader = createPublicClient({ transport: http(rpcUrl) })
const chainId = await reader.getChainId()
const { items } = await (await fetch(`${index}/chains`)).json()
const { identity, reputation } = items.find((c) => c.chainId === chainId).registries
const chain = { id: chainId, name: 'devnet', nativeCurrency: { name: 'ether', symbol: 'ETH', decimals: 18 }, rpcUrls: { default: { http: [rpcUrl] } } }
const faucet = createWalletClient({ account: privateKeyToAccount(faucetKey), chain, transport: http(rpcUrl) })

// party returns a funded account with an SDK of its own.
async function party() {
  const privateKey = generatePrivateKey()
  const account = privateKeyToAccount(privateKey)
  const hash = await faucet.sendTransaction({ to: account.address, value: parseEther('0.1') })
  await reader.waitForTransactionReceipt({ hash })
  const sdk = new SDK({
    chainId, rpcUrl, privateKey,
    registryOverrides: { [chainId]: { IDENTITY: identity, REPUTATION: reputation } },
    subgraphOverrides: { [chainId]: `${index}/subgraphs/${chainId}` },
  })
  return { address: account.address.toLowerCase(), sdk }
}

// until repeats a question until its answer passes the check: the index is some blocks late.
async function until(ask, check) {
  for (const end = Date.now() + 60_000; ;) {
    try {
      const answer = await ask()
      check(answer)
      return answer
    } catch (error) {
      if (Date.now() > end) throw error
      await new Promise((done) => setTimeout(done, 250))
    }
  }
}

const mined = async (handle) => (await (await handle).waitMined()).result
const owner = await party(), client = await party(), other = await party()
const unique = `sdk-${Date.now()}`

// make registers an agent with its file in a data URI.
async function make(n) {
  const agent = owner.sdk.createAgent(`${unique} ${n}`, `The agent ${n} of a test of 100%_ of the SDK`)
  await agent.setMCP(`https://${unique}-${n}.example/mcp`, '2025-06-18', false)
  agent.setActive(n !== 3).setX402Support(n === 1).setTrust(true, false, n === 2)
  agent.setMetadata({ model: `m${n}` })
  await mined(agent.registerOnChain())
  return agent
}
const agents = []
for (const n of [1, 2, 3]) agents.push(await make(n))
const [one, two, three] = agents.map((a) => a.agentId)
const sdk = other.sdk // reads what others wrote
const chains = [chainId]
const find = async (filters, options) => (await sdk.searchAgents({ chains, ...filters }, options)).map((a) => a.agentId).sort()
const all = [one, two, three].sort()
const same = (want) => (got) => assert.deepEqual(got, [...want].sort())

await until(() => find({ name: unique }), same(all))
const summary = await sdk.getAgent(one)
assert.equal(summary.name, `${unique} 1`)
assert.deepEqual(summary.owners.map((o) => o.toLowerCase()), [owner.address])
assert.equal(summary.mcp, `https://${unique}-1.example/mcp`)
assert.equal(summary.x402support, true)
assert.equal(await sdk.getAgent(`${chainId}:99999999`), null)

// The filters of agents.
for (const [filters, want] of [
  [{ name: unique, active: true }, [one, two]],
  [{ name: unique, active: false }, [three]],
  [{ name: unique, x402support: true }, [one]],
  [{ agentIds: [one, three] }, [one, three]],
  [{ owners: [owner.address] }, all],
  [{ owners: [client.address] }, []],
  [{ name: unique, description: '100%_ of' }, all],
  [{ name: unique.replace('-', '_') }, []],
  [{ name: unique, hasMCP: true }, all],
  [{ name: unique, hasA2A: true }, []],
  [{ name: unique, hasRegistrationFile: true }, all],
  [{ owners: [owner.address], hasRegistrationFile: false }, []],
  [{ mcpContains: `${unique}-2` }, [two]],
  [{ name: unique, supportedTrust: ['tee-attestation'] }, [two]],
  [{ name: unique, hasMetadataKey: 'model' }, all],
  [{ name: unique, metadataValue: { key: 'model', value: 'm3' } }, [three]],
  [{ name: unique, registeredAtFrom: new Date(Date.now() + 86_400_000) }, []],
  [{ name: unique, updatedAtFrom: new Date(Date.now() - 86_400_000) }, all],
]) await until(() => find(filters), same(want)).catch((e) => { throw new Error(`${JSON.stringify(filters)}: ${e.message}`) })

// An update of the file.
agents[1].updateInfo(`${unique} two`)
await mined(agents[1].registerOnChain())
await until(() => sdk.getAgent(two), (a) => assert.equal(a?.name, `${unique} two`))

// Ratings: below zero, with decimals, of two clients, in tags.
await mined(client.sdk.giveFeedback(one, -2.5, 'quality', 'text'))
await mined(client.sdk.giveFeedback(one, 97.25, 'quality'))
await mined(other.sdk.giveFeedback(one, 50, 'speed'))
await mined(other.sdk.giveFeedback(two, '12.3456', 'quality'))
const values = (list) => list.map((f) => f.value).sort((a, b) => a - b)
await until(() => sdk.searchFeedback({ agentId: one }), (l) => assert.deepEqual(values(l), [-2.5, 50, 97.25]))
for (const [filters, options, want] of [
  [{ agentId: one, tags: ['speed'] }, {}, [50]],
  [{ agentId: one, reviewers: [client.address] }, {}, [-2.5, 97.25]],
  [{ agentId: one }, { minValue: 0 }, [50, 97.25]],
  [{ agentId: one }, { maxValue: 0 }, [-2.5]],
  [{ agents: [one, two], tags: ['quality'] }, {}, [-2.5, 12.3456, 97.25]],
]) assert.deepEqual(values(await sdk.searchFeedback(filters, options)), want, JSON.stringify([filters, options]))
same([one])(await find({ name: unique, feedback: { minCount: 3 } }))
same([three])(await find({ name: unique, feedback: { hasNoFeedback: true } }))
same([one])(await find({ name: unique, feedback: { fromReviewers: [client.address] } }))
same([one, two])(await find({ name: unique, feedback: { tag: 'quality' } }))
assert.deepEqual(await sdk.getReputationSummary(one, 'quality'), await owner.sdk.getReputationSummary(one, 'quality'))

// An answer, then a revocation. Their index is one-based.
await mined(owner.sdk.appendResponse(one, client.address, 1, { uri: 'https://answers.example/1', hash: keccak256(stringToHex('answer')) }))
const answers = (list) => list.map((f) => `${f.value} ${f.answers.map((a) => a.responder.toLowerCase()).join()}`).sort()
await until(() => sdk.searchFeedback({ agentId: one, reviewers: [client.address] }),
  (l) => assert.deepEqual(answers(l), [`-2.5 ${owner.address}`, '97.25 ']))
same([one])(await find({ name: unique, feedback: { hasResponse: true } }))
await mined(client.sdk.revokeFeedback(one, 1))
await until(() => sdk.searchFeedback({ agentId: one }), (l) => assert.deepEqual(values(l), [50, 97.25]))
assert.deepEqual(values(await sdk.searchFeedback({ agentId: one, includeRevoked: true })), [-2.5, 50, 97.25])
// The SDK rounds to two places.
assert.deepEqual(await sdk.getReputationSummary(one), { count: 2, averageValue: 73.63 })

// Orders, and a transfer.
const ordered = await sdk.searchAgents({ chains, name: unique }, { sort: ['name:desc'] })
assert.deepEqual(ordered.map((a) => a.name), [`${unique} two`, `${unique} 3`, `${unique} 1`])
await mined(owner.sdk.transferAgent(three, client.address))
await until(() => find({ owners: [client.address] }), same([three]))
// What the SDK in Python then reads (story.py).
console.log(JSON.stringify({ chainId, rpcUrl, subgraph: `${index}/subgraphs/${chainId}`, identity, reputation, unique,
  one, two, three, owner: owner.address, client: client.address, other: other.address }))
