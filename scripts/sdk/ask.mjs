// Asks the subgraph at the URL of the first argument through the SDK of agent0 and prints what it answers as JSON. Nothing
// is read from a chain.
import { SDK } from 'agent0-sdk'

const chainId = 8453
const sdk = new SDK({ chainId, rpcUrl: 'http://127.0.0.1:1', subgraphOverrides: { [chainId]: process.argv[2] } })
const chains = [chainId]
const ids = (list) => list.map((a) => a.agentId).sort()
const search = async (filters, options) => ids(await sdk.searchAgents({ chains, ...filters }, options))

const agent = await sdk.getAgent('8453:1')
const feedback = await sdk.searchFeedback({ agentId: '8453:1' })
console.log(JSON.stringify({
  agent: { agentId: agent.agentId, name: agent.name, mcpTools: agent.mcpTools, owners: agent.owners },
  all: await search({}),
  named: await search({ name: 'alpha 100%' }),
  wildcard: await search({ name: '_lpha' }),
  active: await search({ active: true }),
  tools: await search({ mcpTools: ['add', 'other'] }),
  skills: await search({ a2aSkills: ['sum'] }),
  trust: await search({ supportedTrust: ['tee'] }),
  endpoints: await search({ hasMCP: true }),
  without: await search({ hasRegistrationFile: false }),
  metadata: await search({ hasMetadataKey: 'model' }),
  rated: await search({ feedback: { tag: 'quality' } }),
  feedback: feedback.map((f) => ({ value: f.value, tags: f.tags, text: f.text, answers: f.answers?.length ?? 0 })),
  summary: await sdk.getReputationSummary('8453:1'),
}))
