import { crc32, inflateRawSync } from 'node:zlib'

/** The members of a ZIP archive by name, as its list at the end tells; sizes and checksums are checked. */
export function unzip(archive: Uint8Array): Map<string, Buffer> {
  const bytes = Buffer.from(archive)
  const end = bytes.length - 22
  if (bytes.readUInt32LE(end) !== 0x06054b50) throw new Error('no end of the list of members')
  const members = new Map<string, Buffer>()
  let at = bytes.readUInt32LE(end + 16)
  for (let left = bytes.readUInt16LE(end + 10); left > 0; left--) {
    if (bytes.readUInt32LE(at) !== 0x02014b50) throw new Error(`no member at ${at}`)
    const [checksum, packed, size] = [16, 20, 24].map((place) => bytes.readUInt32LE(at + place)) as [
      number,
      number,
      number,
    ]
    const nameBytes = bytes.readUInt16LE(at + 28)
    const local = bytes.readUInt32LE(at + 42)
    const start = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28)
    const content = inflateRawSync(bytes.subarray(start, start + packed))
    if (content.length !== size || crc32(content) !== checksum) throw new Error(`member at ${at}: not as it was packed`)
    members.set(bytes.toString('ascii', at + 46, at + 46 + nameBytes), content)
    at += 46 + nameBytes
  }
  if (at !== end) throw new Error('something behind the list of members')
  return members
}
