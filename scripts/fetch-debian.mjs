/**
 * Unpacks programs of Debian's newest release (sid), or of another one, and their dependencies into a folder, to run them there with
 * chroot: for tests of the recorder with the newest llama.cpp, and with an old glibc. Downloads with apt from the same archive as this
 * system's packages; installs nothing.
 *   node scripts/fetch-debian.mjs [--release=<name>] [--arch=<Debian's name>] <folder> <package>…
 *   node scripts/fetch-debian.mjs --files=<pattern of tar> <folder> <package>…    only these files, without dependencies
 * Needs a Debian system: apt-get, dpkg-deb, Debian's keys. Does nothing if the folder contains these packages already.
 */
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({
  options: { release: { type: 'string', default: 'sid' }, arch: { type: 'string' }, files: { type: 'string' } },
  allowPositionals: true,
})
const { release, arch, files } = values
const [target, ...packages] = positionals
const root = resolve(target)
const stamp = join(root, 'packages.json')
const wanted = `${JSON.stringify(files === undefined ? packages : [...packages, files])}\n`
if (existsSync(stamp) && readFileSync(stamp, 'utf8').startsWith(wanted)) process.exit(0)

const keys = '/usr/share/keyrings/debian-archive-keyring.gpg'
if (!existsSync(keys)) throw new Error(`${keys} is missing: this is no Debian system`)
const run = (command, args, options = {}) =>
  execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...options })

const sites = run('apt-get', ['indextargets', '--format', '$(SITE)', 'Created-By: Packages']).split('\n')
const site = sites.find((line) => /\/debian\/?$/.test(line))
if (!site) throw new Error('apt has no source of Debian itself')

/** apt's state, separate from the system's. */
const apt = `${root}.apt`
rmSync(apt, { recursive: true, force: true })
for (const folder of ['lists/partial', 'archives/partial', 'etc']) mkdirSync(join(apt, folder), { recursive: true })
writeFileSync(join(apt, 'status'), '')
writeFileSync(join(apt, 'sources.list'), `deb [signed-by=${keys}] ${site} ${release} main\n`)
writeFileSync(
  join(apt, 'apt.conf'),
  `Dir::State::lists "${apt}/lists";
Dir::State::status "${apt}/status";
Dir::Cache "${apt}";
Dir::Etc "${apt}/etc";
Dir::Etc::sourcelist "${apt}/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::parts "-";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false"; # a mirror that is not updated still has its packages
APT::Install-Recommends "false";
Debug::NoLocking "true";
${arch ? `APT::Architecture "${arch}"; APT::Architectures "${arch}";` : ''}
`,
)
const options = { cwd: apt, env: { ...process.env, APT_CONFIG: join(apt, 'apt.conf'), LC_ALL: 'C' } }
run('apt-get', ['-q', 'update'], options)
// With an empty list of installed packages, the plan contains all dependencies.
const plan = run('apt-get', ['-s', 'install', ...packages], options)
const versions = [...plan.matchAll(/^Inst (\S+) \((\S+) /gm)]
  .filter(([, name]) => files === undefined || packages.includes(name))
  .map(([, name, version]) => `${name}=${version}`)
run('apt-get', ['-q', 'download', ...versions], options)

const unfinished = `${root}.tmp`
rmSync(unfinished, { recursive: true, force: true })
const archives = readdirSync(apt).filter((name) => name.endsWith('.deb'))
if (files === undefined) {
  for (const folder of ['usr/bin', 'usr/lib', 'usr/lib64', 'dev', 'proc', 'tmp'])
    mkdirSync(join(unfinished, folder), { recursive: true })
  for (const name of ['bin', 'lib', 'lib64']) symlinkSync(`usr/${name}`, join(unfinished, name))
  for (const name of archives) run('dpkg-deb', ['-x', join(apt, name), unfinished])
} else {
  mkdirSync(unfinished, { recursive: true })
  const take = 'dpkg-deb --fsys-tarfile "$0" | tar -x -C "$1" --wildcards "$2"'
  for (const name of archives) run('bash', ['-o', 'pipefail', '-c', take, join(apt, name), unfinished, files])
}
writeFileSync(join(unfinished, 'packages.json'), `${wanted}${versions.join('\n')}\n`)
rmSync(root, { recursive: true, force: true })
renameSync(unfinished, root)
rmSync(apt, { recursive: true })
console.error(`${root}: ${versions.length} packages of Debian ${release}`)
