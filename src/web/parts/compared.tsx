import { compare, wordsIn } from './diff.ts'

interface ComparedProps {
  ours: string
  theirs: string
  side: 'ours' | 'theirs'
}

/** One of two texts, with the words marked that the other does not have. */
export function Compared({ ours, theirs, side }: ComparedProps) {
  return (
    <pre class="body">
      {compare(wordsIn(ours), wordsIn(theirs)).map((hunk, i) =>
        hunk.isSame ? hunk[side] : hunk[side] !== '' && <mark key={i}>{hunk[side]}</mark>,
      )}
    </pre>
  )
}
