import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type McpServer, ResourceTemplate } from '@modelcontextprotocol/server'
import { packageFolder, UsageError } from '../../lib/cli.ts'
import { pageOf, topics } from '../help.ts'

const PLACE = 'ggml2perfetto://docs'

/** Adds the pages of the docs, each whole and by headings, and SKILL.md. */
export async function addResources(server: McpServer): Promise<void> {
  const describe = { mimeType: 'text/markdown' }
  const about = 'How to diagnose a slow llama.cpp in five steps'
  server.registerResource('skill', 'ggml2perfetto://skill', { title: about, ...describe }, async ({ href }) =>
    textOf(href, await readFile(join(await packageFolder(), 'SKILL.md'), 'utf8')),
  )
  for (const topic of await topics()) {
    const title = (await pageOf(topic))!.split('\n')[0]!.replace(/^# /, '')
    server.registerResource(topic, `${PLACE}/${topic}`, { title, ...describe }, async ({ href }) =>
      textOf(href, (await pageOf(topic))!),
    )
  }
  const part = new ResourceTemplate(`${PLACE}/{topic}/{heading}`, { list: undefined })
  const title = 'A part of a page, by its heading: docs/findings/preempted'
  server.registerResource('part of a page', part, { title, ...describe }, async ({ href }, { topic, heading }) =>
    textOf(href, await partOf(`${topic}`, decodeURIComponent(`${heading}`))),
  )
}

const textOf = (uri: string, text: string) => ({ contents: [{ uri, mimeType: 'text/markdown', text }] })

/** The lines of a page from a heading to the next one of its level. */
async function partOf(topic: string, heading: string): Promise<string> {
  const page = await pageOf(topic)
  if (page === undefined) throw new UsageError(`${topic}: no such page`)
  const lines = page.split('\n')
  const plain = (text: string) => text.replace(/^#+ |`/g, '').toLowerCase()
  const levelOf = (line: string) => /^#+(?= )/.exec(line)?.[0].length ?? Infinity
  const start = lines.findIndex((line) => levelOf(line) < Infinity && plain(line).startsWith(heading.toLowerCase()))
  if (start < 0) {
    const known = lines.filter((line) => levelOf(line) < Infinity).map(plain)
    throw new UsageError(`${topic} has no heading "${heading}"; expected one of ${known.join(', ').slice(0, 1000)}`)
  }
  const after = lines.findIndex((line, i) => i > start && levelOf(line) <= levelOf(lines[start]!))
  return lines.slice(start, after < 0 ? undefined : after).join('\n')
}
