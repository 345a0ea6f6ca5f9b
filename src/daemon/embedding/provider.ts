/** Turns texts into vectors whose angles say how alike the texts are. */
export interface Provider {
  /** Another name wherever other vectors would come out: with the model, its version, its size. */
  readonly name: string
  readonly dimensions: number
  /** From this cosine on two notes are duplicates. */
  readonly alike: number
  /** Below this cosine a note does not answer a query; 0 where nobody has measured it. */
  readonly floor: number
  /** `urgent`: somebody waits for this one, the rest is done behind it. */
  embed(texts: string[], urgent?: boolean): Promise<Float32Array[]>
  close(): Promise<void>
}

/** What is behind this says little more about a note, and takes long to read. */
const TEXT_MAX = 2_000

/** The part of a text that is embedded: equal beginnings of this length count as equal. */
export function embedded(text: string): string {
  return (
    text
      .slice(0, TEXT_MAX)
      .replaceAll(/\p{Cs}/gu, '')
      .trim() || '.'
  )
}
