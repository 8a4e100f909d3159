// Runs a capability of an agent by the A2A client of npm, and pays for it by the x402 extension.
// Usage: node a2a.mjs URL CAPABILITY, with the payer's key in KEY. Prints one JSON object.
import { randomUUID } from "node:crypto";
import { ClientFactory } from "@a2a-js/sdk/client";
import { ExactEvmScheme } from "@x402/evm";
import { x402Client } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const [url, capability] = process.argv.slice(2);
const waits = 6; // TASK_STATE_INPUT_REQUIRED

function message(content, more) {
  const part = { content, metadata: undefined, filename: "", mediaType: "" };
  return { messageId: randomUUID(), contextId: "", taskId: "", role: 1, parts: [part], metadata: undefined,
    extensions: [], referenceTaskIds: [], ...more };
}

const agent = await new ClientFactory().createFromUrl(url);
const send = (m) => agent.sendMessage({ tenant: "", message: m, configuration: undefined, metadata: undefined });
let task = await send(message({ $case: "data", value: { capability, input: { text: "from outside" } } }));
let said = task.status.message.metadata;
if (task.status.state === waits) {
  if (said["x402.payment.status"] !== "payment-required") throw new Error(JSON.stringify(said));
  const account = privateKeyToAccount(process.env.KEY);
  const payer = new x402Client().setSpendControls(false).register("eip155:*", new ExactEvmScheme(account));
  const payment = await payer.createPaymentPayload(said["x402.payment.required"]);
  task = await send(message({ $case: "text", value: "the payment" }, { taskId: task.id, contextId: task.contextId,
    metadata: { "x402.payment.status": "payment-submitted", "x402.payment.payload": payment } }));
  said = task.status.message.metadata;
}
const output = task.artifacts[0]?.parts[0].content.value;
console.log(JSON.stringify({ status: said["agent402.status"], body: JSON.stringify(output),
  transaction: said["x402.payment.receipts"]?.[0].transaction }));
