import { existsSync, readFileSync, realpathSync, type Stats, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { systemCode } from './errors.ts'

/**
 * What is at `path`; undefined where nothing can be: no such file, one in place of a folder on the
 * way, a circle of links, a name that no file can have.
 */
export function statOf(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch (error) {
    if (NOWHERE.has(systemCode(error) ?? '')) return undefined
    // An error of a look is no answer.
    throw error
  }
}

const NOWHERE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'ERR_INVALID_ARG_VALUE'])

export const ELSEWHERE =
  'Put the state on a local disk (LEASEHOLD_DIR), or use PostgreSQL for many machines. ' +
  'If you know that one machine alone uses it: LEASEHOLD_TRUST_FILE_SYSTEM=<its type>.'

/** File systems that other machines share, by number: their locks and fsync cannot be trusted. */
const NETWORK: Record<number, string> = {
  0x6969: 'NFS',
  0x517b: 'SMB',
  0xff534d42: 'CIFS',
  0xfe534d42: 'SMB2',
  0x5346414f: 'AFS',
  0x6b414653: 'kAFS',
  0x73757245: 'Coda',
  0x01021997: '9p',
  0x00c36400: 'Ceph',
  0x0bd00bd0: 'Lustre',
  0x7461636f: 'OCFS2',
  0x01161970: 'GFS2',
  0x47504653: 'GPFS',
  0x19830326: 'BeeGFS',
  0xaad7aaea: 'PanFS',
  0x564c: 'NCP',
  0x20030528: 'OrangeFS',
  0x786f4256: 'VirtualBox folder',
  0xbacbacbc: 'VMware folder',
}

/** Anything may stand behind this one: what it is, only the list of mounts tells. */
const FUSE = 0x65735546

/** By the name that a mount has; what is none of these and not FUSE is on this machine. */
const NETWORK_NAMES = new Set(
  `nfs nfs4 cifs smb2 smb3 smbfs afs kafs coda 9p ceph lustre ocfs2 gfs gfs2 gpfs mmfs beegfs
   glusterfs panfs ncpfs orangefs pvfs2 vboxsf vmhgfs prl_fs virtiofs drvfs`.split(/\s+/),
)

/** Disks and layers of this machine that are served by a program. */
const FUSE_LOCAL = new Set(['fuseblk', 'fuse.fuse-overlayfs', 'fuse.lxcfs', 'fuse.bindfs'])

export function networkName(type: number): string | undefined {
  return NETWORK[type >>> 0]
}

/** Whether a mount of this type may be used by several machines at once, or is not known not to. */
export function isNetworkType(type: string): boolean {
  return NETWORK_NAMES.has(type) || (/^fuse(?:\.|$)/.test(type) && !FUSE_LOCAL.has(type))
}

/** The type of the mount that `path` is on, of the lines of /proc/mounts: the longest, the last. */
export function mountType(path: string, mounts: string): string | undefined {
  let found: { point: string; type: string } | undefined
  for (const line of mounts.split('\n')) {
    const [, point = '', type] = line.split(' ')
    if (type === undefined) continue
    const at = point.replaceAll(/\\(\d{3})/g, (_, octal: string) =>
      String.fromCodePoint(Number.parseInt(octal, 8)),
    )
    const within = at === '/' || path === at || path.startsWith(`${at}/`)
    if (within && (!found || at.length >= found.point.length)) found = { point: at, type }
  }
  return found?.type
}

/** What `folder` is on, or will be on; `refused` unless the environment vouches for that type. */
export function fileSystemOf(folder: string): { name: string; refused: boolean } {
  let existing = folder
  while (!existsSync(existing)) existing = dirname(existing)
  const { type } = statfsSync(existing)
  const known = networkName(type)
  // Only what its number does not tell is looked up: that costs every command a file to read.
  const mounted = type >>> 0 === FUSE ? (mountedType(existing) ?? 'fuse') : undefined
  const name = known ?? mounted ?? 'local'
  const isNetwork = known !== undefined || (mounted !== undefined && isNetworkType(mounted))
  const trusted = process.env['LEASEHOLD_TRUST_FILE_SYSTEM']
  const refused = isNetwork && (trusted === undefined || ![known, mounted].includes(trusted))
  return { name, refused }
}

/** Outside of Linux there is no such list: the number is all there is. */
const mountedType = (path: string) =>
  attempt(() => mountType(realpathSync(path), readFileSync('/proc/self/mounts', 'utf8')), undefined)
