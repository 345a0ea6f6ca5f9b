import type { Situation } from './wrong_scene.ts'

const HEAD = `# When something is wrong

What a command says, the code it exits with, and what \`leasehold doctor\` says of it. Every line of
this page is staged by a test (\`test/e2e/wrong_situations.ts\`, from which \`npm run reference\`
writes it). \`…\` stands for what differs. Exit codes: 0 ok, 1 broken installation or doctor's
finding, 2 bad input, 3 not found, 4 not allowed, 5 held or stale, 6 nothing ready, 75 not now,
76 damaged.

| what is wrong | \`leasehold\` … | exit | it says | \`doctor\` says |
|---|---|---|---|---|
`

const cell = (text: string) =>
  text.replaceAll('\n', ' ').replaceAll(/\s+/g, ' ').replaceAll('|', '\\|')

/** docs/troubleshooting.md, as the table says. */
export function troubleshooting(situations: Situation[]): string {
  const rows = situations.map(({ wrong, run, exit, says, doctor }) => {
    const said = doctor === 'ok' ? 'ok' : `\`${cell(doctor)}\``
    return `| ${wrong} | \`${run}\` | ${exit} | \`${cell(says)}\` | ${said} |\n`
  })
  return HEAD + rows.join('')
}

/** What a text with `…` in it stands for. */
export function patternOf(text: string): RegExp {
  const parts = text
    .split('…')
    .map((part) => part.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`))
  return new RegExp(parts.join('[^]*'))
}
