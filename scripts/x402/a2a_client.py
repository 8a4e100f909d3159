"""Runs a capability of an agent by the A2A client of PyPI, and pays for it by the x402 extension.
Usage: a2a_client.py URL CAPABILITY, with the payer's key in KEY. Prints one JSON object."""
import asyncio
import json
import os
import sys

from a2a.client.client_factory import create_client
from a2a.helpers.proto_helpers import get_data_parts, new_data_message, new_text_message
from a2a.types.a2a_pb2 import Role, SendMessageRequest, TaskState
from eth_account import Account
from google.protobuf.json_format import MessageToDict
from x402 import x402ClientSync
from x402.mechanisms.evm.exact.register import register_exact_evm_client
from x402.schemas.payments import PaymentRequired


async def send(agent, message):
    """Return the task of a message, with what a stream told of it afterwards."""
    task = None
    async for answer in agent.send_message(SendMessageRequest(message=message)):
        if answer.HasField("task"):
            task = answer.task
        elif answer.HasField("artifact_update"):
            task.artifacts.append(answer.artifact_update.artifact)
        elif answer.HasField("status_update"):
            task.status.CopyFrom(answer.status_update.status)
    return task


async def main(url, capability):
    """Run the capability."""
    agent = await create_client(url)
    task = await send(agent, new_data_message({"capability": capability, "input": {"text": "from outside"}},
                                              role=Role.ROLE_USER))
    said = MessageToDict(task.status.message.metadata)
    if task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED:
        payer = register_exact_evm_client(x402ClientSync(), Account.from_key(os.environ["KEY"]))
        payer.set_spend_controls(False)  # which allow well-known tokens alone
        payment = payer.create_payment_payload(PaymentRequired.model_validate(said["x402.payment.required"]))
        message = new_text_message("the payment", context_id=task.context_id, task_id=task.id, role=Role.ROLE_USER)
        message.metadata.update({"x402.payment.status": "payment-submitted", "x402.payment.payload":
                                 payment.model_dump(mode="json", by_alias=True, exclude_none=True)})
        task = await send(agent, message)
        said = MessageToDict(task.status.message.metadata)
    receipts = said.get("x402.payment.receipts", [{}])
    print(json.dumps({"status": int(said["agent402.status"]), "body": json.dumps(get_data_parts(task.artifacts[0].parts)),
                      "transaction": receipts[0].get("transaction", "")}))


asyncio.run(main(*sys.argv[1:]))
