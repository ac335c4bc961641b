import { join } from 'node:path'
import { afterAll } from '@jest/globals'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { folder, HANGS_MS, NODE } from '../cli/helpers.ts'
import { ROOT } from '../root.ts'

/** The server as agents start it: built. */
export const SERVER = join(ROOT, 'dist/ggml2perfetto-mcp.js')

/** A call that an answer names. */
export interface Named {
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
  readonly same?: readonly string[]
  readonly why: string
}

/** An answer of a tool. */
export interface Answer {
  readonly verdict: string
  // biome-ignore lint/suspicious/noExplicitAny: fields of several tools
  readonly evidence: any
  readonly check: readonly Named[]
  readonly next: readonly Named[]
  readonly left: { readonly what: string; readonly count: number; readonly next: Named } | null
}

/** A server, with the SDK's own client. */
export class Agent {
  readonly client = new Client({ name: 'test', version: '1' })
  readonly #transport: StdioClientTransport

  constructor(options: readonly string[]) {
    const [command, ...flags] = NODE
    const env = { ...process.env } as Record<string, string>
    this.#transport = new StdioClientTransport({ command, args: [...flags, SERVER, ...options], cwd: folder, env })
  }

  /** Starts a server, which ends with the test file. */
  static async start(...options: readonly string[]): Promise<Agent> {
    const agent = new Agent(options)
    await agent.client.connect(agent.#transport)
    agents.push(agent)
    return agent
  }

  get pid(): number {
    return this.#transport.pid!
  }

  /** What the tool returns, as it is. */
  result(name: string, args: Readonly<Record<string, unknown>>) {
    return this.client.callTool({ name, arguments: { ...args } }, { timeout: HANGS_MS })
  }

  /** The answer of a tool: its JSON as text is its structured content, which has the schema that is published, of at most 4 KB. */
  async ask(name: string, args: Readonly<Record<string, unknown>>): Promise<Answer> {
    const { isError, content, structuredContent } = await this.result(name, args)
    const { text } = content[0] as { readonly text: string }
    if (isError) throw new Error(text)
    if (Buffer.byteLength(text) > 4096)
      throw new Error(`${name} ${JSON.stringify(args)}: ${Buffer.byteLength(text)} bytes`)
    if (JSON.stringify(structuredContent) !== text) throw new Error(`${name}: the text is another answer`)
    return JSON.parse(text)
  }

  /** The error that a call ends with. */
  async error(name: string, args: Readonly<Record<string, unknown>>): Promise<string> {
    const { isError, content } = await this.result(name, args)
    const { text } = content[0] as { readonly text: string }
    if (!isError) throw new Error(`expected an error, found ${text}`)
    if (Buffer.byteLength(text) > 4096) throw new Error(`an error of ${Buffer.byteLength(text)} bytes`)
    return text
  }

  /** Calls what an answer names. */
  follow({ tool, arguments: named, same = [] }: Named, before: Readonly<Record<string, unknown>>): Promise<Answer> {
    return this.ask(tool, { ...Object.fromEntries(same.map((name) => [name, before[name]])), ...named })
  }
}

const agents: Agent[] = []

/** Call at the top of a test file: ends its servers. */
export function useAgents(): void {
  afterAll(async () => {
    for (const agent of agents.splice(0)) await agent.client.close()
  })
}
