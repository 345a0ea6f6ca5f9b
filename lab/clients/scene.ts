/** The files of the trial of writes: what is in them, and which of them another agent has. */

export const TEXT = 'one\ntwo\nthree\n'
const THERE = ['edit', 'delete', 'move', 'shell', 'commit', 'sub', 'free']

export const filesNamed = (...names: string[]) =>
  Object.fromEntries(names.map((name) => [`${name}.txt`, TEXT]))

export const SCENE = filesNamed(...THERE)
export const HELD = ['create', ...THERE.filter((name) => name !== 'free')].map(
  (name) => `${name}.txt`,
)
/** What its holder has not committed yet. */
export const HALF_DONE = { 'commit.txt': 'half done by its holder\n' }
