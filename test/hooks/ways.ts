/** A way for a shell to write a file: F stands for the file, which another agent has reserved. */
export interface Way {
  command: string
  /** Files that it needs, written beforehand. */
  files?: Record<string, string>
}

/** Read from the command, and refused before it runs. */
export const REFUSED: Way[] = [
  { command: 'echo x > F' },
  { command: "cat > F <<'EOF'\nx\nEOF" },
  { command: 'echo x | tee -a F' },
  { command: 'sed -i s/mine/x/ F' },
  { command: "sed -n 'w F' other.txt" },
  { command: 'perl -pi -e s/mine/x/ F' },
  { command: 'perl -0pi -e s/mine/x/ F' },
  { command: 'awk \'{ print > "F" }\' other.txt' },
  { command: 'cp other.txt F' },
  { command: 'mv other.txt F' },
  { command: 'rm -f F' },
  { command: 'truncate -s 0 F' },
  { command: 'dd if=/dev/zero of=F bs=1 count=1' },
  { command: 'install -m 644 other.txt F' },
  { command: 'ln -sf ../other.txt F' },
  { command: 'ln -f other.txt F' },
  { command: 'touch other.txt/x; rm F' },
  { command: 'sort -o F other.txt' },
  { command: 'uniq other.txt F' },
  { command: 'ex -s -c "%s/mine/x/" -c wq F' },
  { command: 'vim -es -c "%s/mine/x/" -c wq F' },
  { command: 'curl -so F file:///etc/hostname' },
  { command: 'gcc -o F other.c' },
  { command: 'patch F fix.diff' },
  { command: 'git checkout F' },
  { command: 'git checkout HEAD F' },
  { command: 'git checkout -- F' },
  { command: 'git restore F' },
  { command: 'git restore --source=HEAD --worktree F' },
  { command: 'git checkout-index -f F' },
  { command: 'git read-tree -u --reset HEAD' },
  { command: 'git stash' },
  { command: 'git reset --hard' },
  { command: 'git reset --merge' },
  { command: 'git checkout .' },
  { command: 'git rm -f F' },
  { command: 'git mv F moved.ts' },
  { command: 'git apply fix.diff' },
  { command: 'git diff --output=F' },
  { command: 'git merge-file F other.txt other.txt' },
  { command: 'tar xf all.tar' },
  { command: 'tar xf all.tar F' },
  { command: 'tar cf F other.txt' },
  { command: 'unzip -o all.zip' },
  { command: 'gzip -f F' },
  { command: 'xz -f F' },
  { command: 'zstd -qf -o F other.txt' },
  { command: 'brotli -f other.txt -o F' },
  { command: 'openssl enc -base64 -in other.txt -out F' },
  { command: 'zip -m pack.zip F' },
  { command: 'timeout --signal KILL 5 rm F' },
  { command: 'sudo --user root rm F' },
  { command: 'sudo -nu root rm F' },
  { command: 'env -C held rm B' },
  { command: "env -S 'rm F'" },
  { command: 'echo | xargs -r rm F' },
  { command: "bash -c 'rm F'" },
  { command: "eval 'rm F'" },
  { command: "trap 'rm F' EXIT" },
  { command: 'find held -name B -delete' },
  { command: 'find held -name B -exec rm {} +' },
  { command: 'mv held elsewhere' },
  { command: 'watch -n 1 rm F' },
  { command: "script -qc 'rm F' /dev/null" },
  { command: 'npx prettier --write F' },
  { command: 'pnpm exec prettier --write F' },
  { command: 'pwsh -Command "Set-Content -Path F -Value x"' },
  { command: 'python3 -c \'open("F", "w").write("x")\'' },
  { command: "python3 - <<'EOF'\nopen('F', 'w').write('x')\nEOF" },
  { command: 'node -e \'require("fs").writeFileSync("F", "x")\'' },
  { command: 'perl -e \'open(my $f, ">", "F"); print $f "x"\'' },
  { command: "echo 'rm F' | sh" },
  { command: 'ls F | xargs rm' },
  { command: 'rm "$(ls F)"' },
  { command: '$(echo rm) F' },
  { command: 'find F -exec sh -c \'rm "$1"\' _ {} \\;' },
  { command: '[[ -n $(rm F) ]]' },
  { command: '(( $(rm F) ))' },
  { command: 'names=(F); rm "${names[@]}"' },
  { command: 'rm ${X:=F}' },
  { command: 'X=held/; X+=B; rm $X' },
  { command: "git checkout -- ':(glob)held/*B'" },
  { command: "git checkout -- ':!src'" },
  { command: 'git clean -fdx held' },
]

/** Not to be told from the text: let through, and noticed once they have run. */
export const NOTICED: Way[] = [
  { command: 'sh way.sh', files: { 'way.sh': 'echo x > F' } },
  { command: '. ./way.sh', files: { 'way.sh': 'echo x > F' } },
  { command: 'make -s -f way.mk', files: { 'way.mk': 'all:\n\t@echo x > F\n' } },
  { command: "printf 'w %s' F | sed 's/^w/rm/' | sh" },
  { command: 'xargs rm < names.txt', files: { 'names.txt': 'F\n' } },
  { command: 'read name < names.txt; echo x > "$name"', files: { 'names.txt': 'F\n' } },
  { command: 'ln -s held/B link.B && echo x > link.B' },
  { command: 'ln F hard.B && echo x > hard.B' },
  {
    command: 'python3 way.py',
    files: {
      'way.py':
        "import os\ns = os.stat('F')\nopen('F', 'r+').write('y')\n" +
        "os.utime('F', ns=(s.st_atime_ns, s.st_mtime_ns))\n",
    },
  },
]

/** A way that neither the reader nor the net can see, and why; `test` shows that this is so. */
export const UNSEEN: string[] = [
  'A change of mode, owner or time alone: what is in the file is what it was.',
  'A write that is taken back within the same tool call, by a program that the command starts.',
  'A write while a shell command of the holder runs: it may be that command’s own.',
  'A write within 2 s after the holder’s own: formatters that run as hooks do just that.',
  'A file of a reserved glob behind the first 200 that git knows, or that git ignores.',
  'A file of more than 4 MB whose size and time are put back as they were.',
  'Anything where hooks have no state folder on the machine of the files: a token of a server ' +
    'elsewhere, a reservation that came by HTTP alone, an agent without hooks.',
]

export const WAYS_BEGIN = '<!-- ways: made by npm run reference -->'
export const WAYS_END = '<!-- /ways -->'

/** The part of docs/hooks.md that says what becomes of each way. */
export function waysText(): string {
  const refused = `${REFUSED.length} are refused before they run`
  const noticed = `${NOTICED.length} are let through and noticed`
  return [
    WAYS_BEGIN,
    '',
    `Of ${REFUSED.length + NOTICED.length} ways for a shell to write another agent's file that ` +
      `\`test/hooks/ways.ts\` lists, ${refused}, ${noticed} within the same tool call. ` +
      'Seen by neither:',
    '',
    ...UNSEEN.map((each, i) => `${i + 1}. ${each}`),
    '',
    WAYS_END,
  ].join('\n')
}
