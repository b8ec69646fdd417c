"""What FastMCP's client sees of a server. Argument: {"url", "headers"} or {"command", "args"}, and "calls"."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


async def main(wanted: dict) -> None:
    if "url" in wanted:
        transport = StreamableHttpTransport(wanted["url"], headers=wanted.get("headers"))
    else:
        transport = StdioTransport(command=wanted["command"], args=wanted["args"])
    async with Client(transport) as client:
        seen = {"instructions": client.instructions}
        seen["tools"] = [dumped(tool) for tool in await client.list_tools()]
        seen["results"] = [
            dumped(await client.call_tool_mcp(name, arguments=arguments)) for name, arguments in wanted["calls"]
        ]
        capabilities = client.server_capabilities
        if capabilities.resources:
            seen["resources"] = [dumped(resource) for resource in await client.list_resources()]
            seen["texts"] = [(await client.read_resource(each["uri"]))[0].text for each in seen["resources"]]
        if capabilities.prompts:
            seen["prompts"] = [dumped(prompt) for prompt in await client.list_prompts()]
            seen["said"] = [
                (await client.get_prompt(each["name"])).messages[0].content.text for each in seen["prompts"]
            ]
    print(json.dumps(seen))


def dumped(value) -> dict:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


asyncio.run(main(json.loads(sys.argv[1])))
