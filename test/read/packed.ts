import { crc32, deflateRawSync, deflateSync } from 'node:zlib'
import { ZipWriter } from '../../lib/write/zip.ts'
import { joined } from '../line/support.ts'

/** Logs packed as other tools pack them. */

const utf8 = new TextEncoder()

/** The output of `adb shell atrace -z`: a line of the tool, then zlib's format. */
export const atraceOf = (text: Uint8Array): Uint8Array =>
  Buffer.concat([utf8.encode('capturing trace... done\nTRACE:\n'), deflateSync(text)])

/** A page of systrace: the viewer, the trace, and further data that is none. */
export const pageOf = (text: Uint8Array): Uint8Array =>
  Buffer.concat([
    utf8.encode(
      `<!DOCTYPE html>\n<html>\n<head><script>${'var viewer = "<script>";\n'.repeat(300)}</script></head>\n<body>\n`,
    ),
    utf8.encode('<!-- BEGIN TRACE -->\n  <script class="trace-data" type="application/text">\n'),
    text,
    utf8.encode('\n  </script>\n<!-- END TRACE -->\n</body></html>\n'),
  ])

/** A ZIP archive as the command `zip` writes it, after a folder: sizes ahead of the content. `method` 0: stored. */
export function zipOf(content: Uint8Array, method: 0 | 8): Uint8Array {
  const local = (name: string, plain: Uint8Array) => {
    const packed = method === 8 && plain.length > 0 ? deflateRawSync(plain) : plain
    const head = Buffer.alloc(30)
    head.writeUInt32LE(0x04034b50, 0)
    head.writeUInt16LE(20, 4)
    head.writeUInt16LE(plain.length > 0 ? method : 0, 8)
    head.writeUInt32LE(crc32(plain), 14)
    head.writeUInt32LE(packed.length, 18)
    head.writeUInt32LE(plain.length, 22)
    head.writeUInt16LE(name.length, 26)
    return Buffer.concat([head, utf8.encode(name), packed])
  }
  const end = Buffer.alloc(68)
  end.writeUInt32LE(0x02014b50, 0)
  end.writeUInt32LE(0x06054b50, 46)
  return Buffer.concat([local('trace/', new Uint8Array(0)), local('trace/log', content), end])
}

/** A ZIP archive that was written to a pipe: sizes are after the content. */
export async function streamedZipOf(content: Uint8Array): Promise<Uint8Array> {
  async function* written() {
    const zip = new ZipWriter()
    async function* pieces() {
      yield content
    }
    yield* zip.add('log', pieces())
    yield* zip.finish()
  }
  return joined(written())
}
