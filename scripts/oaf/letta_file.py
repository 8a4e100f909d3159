"""Check agent files with Letta's own schema and its rules for ids: letta_file.py FILE... Prints the agents' names."""
import json
import os
import re
import sys

from letta.schemas.agent_file import AgentFileSchema


def check(name):
    """Check one agent file and print what is in it."""
    with open(name, encoding="utf-8") as f:
        schema = AgentFileSchema.model_validate(json.load(f))
    ids = set()
    for prefix, rows in {"agent": schema.agents, "block": schema.blocks, "group": schema.groups,
                         "mcp_server": schema.mcp_servers}.items():
        for row in rows:
            assert re.fullmatch(prefix + r"-\d+", row.id) and row.id not in ids, row.id
            ids.add(row.id)
    for agent in schema.agents:
        assert set(agent.block_ids or []) | set(agent.group_ids) <= ids, agent.id
        print(agent.name)
    for group in schema.groups:
        assert set(group.agent_ids) | {group.manager_config.manager_agent_id} <= ids, group.id
    for skill in schema.skills:
        print("skill", skill.name)


for file in sys.argv[1:]:
    check(file)
sys.stdout.flush()
os._exit(0)  # threads of the server's libraries may never end
