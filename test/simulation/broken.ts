/** A promise that did not hold. */
export class Broken extends Error {
  constructor(
    readonly promise: string,
    what: string,
  ) {
    super(`${promise} is broken: ${what}`)
  }
}

export function mustHold(promise: string, holds: boolean, what: () => string): void {
  if (!holds) throw new Broken(promise, what())
}
