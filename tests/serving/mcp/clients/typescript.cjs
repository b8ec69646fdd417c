// What the official TypeScript client sees of a server. Argument: {"url", "headers"} or {"command", "args"}, and "calls".
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

async function main({ url, headers, command, args, calls }) {
  const transport = url
    ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
    : new StdioClientTransport({ command, args, stderr: "inherit", env: process.env });
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport);
  const seen = { instructions: client.getInstructions(), capabilities: client.getServerCapabilities() };
  seen.tools = (await client.listTools()).tools;
  seen.results = [];
  for (const [name, given] of calls) seen.results.push(await client.callTool({ name, arguments: given }));
  if (seen.capabilities.resources) {
    seen.resources = (await client.listResources()).resources;
    seen.texts = [];
    for (const { uri } of seen.resources) seen.texts.push((await client.readResource({ uri })).contents[0].text);
  }
  if (seen.capabilities.prompts) {
    seen.prompts = (await client.listPrompts()).prompts;
    seen.said = [];
    for (const { name } of seen.prompts) seen.said.push((await client.getPrompt({ name })).messages[0].content.text);
  }
  if (url) await transport.terminateSession();
  await client.close();
  console.log(JSON.stringify(seen));
}

main(JSON.parse(process.argv[2])).catch((error) => {
  console.error(String(error));
  process.exit(1);
});
