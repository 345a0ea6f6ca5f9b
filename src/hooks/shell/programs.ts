import { ALL, type Program } from './program.ts'
import * as special from './special.ts'

const { press } = special
const PRESSED = { valued: 'SbTMo', long: 'suffix', unless: 'c stdout t test l list' }
const COPIED = { valued: 'St', long: 'target-directory suffix mode group' }
const FIXED = { writes: ALL, fixes: true, unless: 'check c diff' }
const EDITED = { writes: ALL, valued: 'cTtwSu', long: 'cmd' }

/** Programs that write, by their names; any other is taken to write nothing of its own. */
const WRITING: Record<string, Program> = {
  'tee sponge unlink dos2unix unix2dos': { writes: ALL },
  touch: { writes: ALL, valued: 'drt', long: 'date reference time' },
  truncate: { writes: ALL, valued: 'rs', long: 'reference size' },
  shred: { writes: ALL, valued: 'ns', long: 'iterations size' },
  fallocate: { writes: ALL, valued: 'lop', long: 'length offset' },
  ed: { writes: ALL, valued: 'p' },
  'ex vi vim nvim': EDITED,
  emacs: { writes: ALL, valued: 'flL', long: 'eval load funcall execute' },
  sqlite3: { writes: [0, 1] },
  link: { writes: [1, 2] },
  uniq: { writes: [1, 2], valued: 'fsw' },
  xxd: { writes: [1, 2], valued: 'cglos' },
  rm: { removes: ALL },
  rename: { removes: [1] },
  wget: {
    valued: 'OoPUTtQlADIXBei',
    long: 'output-document',
    outputs: 'O output-document',
  },
  'mkdir rmdir chmod chown chgrp chattr mount umount': { touches: ALL },
  setfacl: { touches: ALL, valued: 'mxM' },

  // `sed -i`, `-i.bak`, on a Mac `-i ''`; and `w file` in a script.
  'sed gsed': {
    writes: ALL,
    if: 'i in-place',
    script: 'e f expression file',
    named: /(?:^|[;{}\n]\s*|\/[gpIimeM\d]*|[\d$]\s*)w\s+([^\s;}]+)/g,
    ...{ valued: 'efl', long: 'expression file', attached: 'i' },
  },
  'perl ruby': {
    ...{ writes: ALL, if: 'i', script: 'e E' },
    ...{ valued: 'eEIMm', attached: 'i', numbered: '0l' },
  },
  'awk gawk': {
    ...{ script: 'f file e', named: />\s*"([^"]+)"/g, does: special.editInPlace },
    ...{ valued: 'Ffvieo', long: 'include file' },
  },

  prettier: { ...FIXED, if: 'write w' },
  'eslint stylelint oxlint ruff': { ...FIXED, if: 'fix' },
  biome: { ...FIXED, if: 'write fix' },
  'gofmt goimports gofumpt': { ...FIXED, if: 'w' },
  shfmt: { ...FIXED, if: 'w write' },
  'clang-format': { ...FIXED, if: 'i' },
  yq: { ...FIXED, if: 'i inplace' },
  autopep8: { ...FIXED, if: 'i in-place' },
  rubocop: { ...FIXED, if: 'a A autocorrect autocorrect-all' },
  'black isort rustfmt oxfmt sd': FIXED,

  cp: { ...COPIED, does: special.copy },
  mv: { ...COPIED, does: special.copy },
  // reason: an option of install(1)
  install: { ...COPIED, valued: 'gmoSt', long: `${COPIED.long} owner`, does: special.copy },
  scp: { valued: 'cDFiJloPSX', does: special.copy },
  ln: { valued: 'St', long: 'target-directory suffix', does: special.link },
  dd: { does: special.writeDd },
  rsync: {
    unless: 'n dry-run list-only',
    valued: 'efBMT',
    long: 'exclude include filter rsh files-from backup-dir',
    does: special.synchronize,
  },
  curl: {
    valued: 'oXHduAebFTcmKCEQrUwyYxtz',
    long: 'output output-dir request header data',
    does: special.download,
  },
  patch: {
    unless: 'dry-run',
    valued: 'pdiorFBzVYgD',
    long: 'strip directory input output',
    does: special.patch,
  },
  'apply_patch applypatch': { does: special.applyEnvelope },

  'tar bsdtar gtar jar': { does: special.tar },
  '7z 7za 7zr': { attached: 'o', does: special.sevenZip },
  ar: { does: special.ar },
  zip: { valued: 'bnt', writes: [0, 1], does: special.zip },
  unzip: { valued: 'dx', unless: 'l p t n Z z', unpacks: { into: 'd', members: [1] } },
  cpio: {
    ...{ if: 'i extract', unless: 't list', valued: 'DFHIOCERM' },
    unpacks: { into: 'D', members: ALL },
  },
  'gzip gunzip pigz unpigz': { ...PRESSED, does: press('.gz') },
  'compress uncompress': { ...PRESSED, does: press('.Z') },
  'lzma unlzma': { ...PRESSED, does: press('.lzma') },
  'bzip2 bunzip2': { ...PRESSED, does: press('.bz2') },
  'xz unxz': { ...PRESSED, does: press('.xz') },
  'zstd unzstd': { ...PRESSED, does: press('.zst') },
  brotli: { ...PRESSED, does: press('.br') },
  lzip: { ...PRESSED, does: press('.lz') },
  lzop: { ...PRESSED, does: press('.lzo') },
  lz4: { ...PRESSED, does: press('.lz4') },

  'set-content add-content clear-content out-file tee-object new-item export-csv export-clixml': {
    does: special.cmdlet({ writes: 'from' }),
  },
  'sc ac clc ni': { does: special.cmdlet({ writes: 'from' }) },
  'remove-item ri del erase': { does: special.cmdlet({ removes: 'from' }) },
  'move-item rename-item mi ren': { does: special.cmdlet({ removes: 'from', writes: 'to' }) },
  'copy-item cpi': { does: special.cmdlet({ writes: 'to' }) },
}

/** Programs that run the command in their words. */
const RUNNING: Record<string, Program> = {
  sudo: {
    ...{ runs: 0, folder: 'D chdir', valued: 'ugCDhpRrTU' },
    long: 'user group host prompt chdir chroot role type other-user close-from command-timeout',
  },
  doas: { runs: 0, valued: 'uC' },
  env: {
    ...{ runs: 0, text: 'S split-string', folder: 'C chdir' },
    ...{ valued: 'uCS', long: 'unset chdir split-string' },
  },
  time: { runs: 0, valued: 'fo', long: 'format output' },
  'nohup setsid command builtin busybox toybox chronic bunx': { runs: 0 },
  nice: { runs: 0, valued: 'n', long: 'adjustment' },
  ionice: { runs: 0, valued: 'cnp', long: 'class classdata' },
  stdbuf: { runs: 0, valued: 'ioe', long: 'input output error' },
  timeout: { runs: 1, valued: 'ks', long: 'signal kill-after' },
  flock: {
    ...{ runs: 1, text: 'c command' },
    ...{ valued: 'wEc', long: 'timeout conflict-exit-code command' },
  },
  exec: { runs: 0, valued: 'a' },
  xargs: {
    ...{ runs: 0, valued: 'adEILnPs' },
    long: 'arg-file delimiter max-args max-procs max-chars process-slot-var',
  },
  strace: { runs: 0, valued: 'aeEIoOpPsSuUX' },
  taskset: { runs: 1 },
  su: { runs: 0, text: 'c command', valued: 'csgGT', long: 'command' },
  chrt: { runs: 1, valued: 'TPD' },
  setpriv: { runs: 0, long: 'reuid regid groups securebits pdeathsig' },
  runuser: { runs: 0, text: 'c command', valued: 'ugGc', long: 'user group supp-group command' },
  npx: { runs: 0, text: 'c call', valued: 'pc', long: 'package call' },
  caffeinate: { runs: 0, valued: 'tw' },
  unshare: { runs: 0, valued: 'SGRwl', long: 'root wd setuid setgid' },
  script: { runs: 0, text: 'c command', valued: 'cEImoOTBt', long: 'command' },
  // `pnpm exec prettier`, `uv run black`.
  npm: { runs: 0, verbs: 'exec x' },
  'pnpm yarn': { runs: 0, verbs: 'exec dlx' },
  bun: { runs: 0, verbs: 'x' },
  'uv poetry pipenv': { runs: 0, verbs: 'run' },
  bundle: { runs: 0, verbs: 'exec' },
}

const PROGRAMS = new Map(
  Object.entries({ ...WRITING, ...RUNNING }).flatMap(([names, program]) =>
    names.split(' ').map((name) => [name, program] as const),
  ),
)

/** What is known of a program; PowerShell does not care for the case of its commands. */
export const programNamed = (name: string) => PROGRAMS.get(name) ?? PROGRAMS.get(name.toLowerCase())
