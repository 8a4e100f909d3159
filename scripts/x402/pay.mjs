// Pays a server with the clients of npm, and checks its offers and receipts.
// Usage: node pay.mjs v1|v2 URL PAYEE, with the payer's key in KEY. Prints one JSON object.
import { privateKeyToAccount } from "viem/accounts";

const [version, url, payee] = process.argv.slice(2);
const account = privateKeyToAccount(process.env.KEY);
const request = { method: "POST", headers: { "Content-Type": "application/json" }, body: '"from npm"' };

async function payV1() {
  const { wrapFetchWithPayment, decodeXPaymentResponse } = await import("x402-fetch");
  const answer = await wrapFetchWithPayment(fetch, account)(url, request);
  const settled = decodeXPaymentResponse(answer.headers.get("X-PAYMENT-RESPONSE"));
  return { status: answer.status, body: await answer.text(), transaction: settled.transaction };
}

async function payV2() {
  const { wrapFetchWithPayment, x402Client, decodePaymentResponseHeader } = await import("@x402/fetch");
  const { ExactEvmScheme } = await import("@x402/evm");
  const x = await import("@x402/extensions");
  const demand = JSON.parse(atob((await fetch(url, request)).headers.get("PAYMENT-REQUIRED")));
  const offers = x.extractOffersFromPaymentRequired(demand);
  const offer = await x.verifyOfferSignatureEIP712(offers[0]);
  const client = new x402Client().setSpendControls(false).register("eip155:*", new ExactEvmScheme(account));
  const answer = await wrapFetchWithPayment(fetch, client)(url, request);
  const settled = decodePaymentResponseHeader(answer.headers.get("PAYMENT-RESPONSE"));
  const receipt = x.extractReceiptFromResponse(answer);
  const signed = await x.verifyReceiptSignatureEIP712(receipt);
  if (offer.signer.toLowerCase() !== payee.toLowerCase() || signed.signer.toLowerCase() !== payee.toLowerCase()) {
    throw new Error(`offer of ${offer.signer} and receipt of ${signed.signer}, the payee is ${payee}`);
  }
  const decoded = x.decodeSignedOffers(offers)[0];
  if (!x.findAcceptsObjectFromSignedOffer(offers[0], demand.accepts) ||
      !x.verifyReceiptMatchesOffer(receipt, decoded, [account.address])) {
    throw new Error("the receipt does not match the offer");
  }
  return { status: answer.status, body: await answer.text(), transaction: settled.transaction };
}

console.log(JSON.stringify(await (version === "v1" ? payV1() : payV2())));
