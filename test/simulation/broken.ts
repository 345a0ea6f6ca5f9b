/** A promise that did not hold. */
export class Broken extends Error {
  readonly promise: string
  constructor(promise: string, what: string) {
    super(`${promise} is broken: ${what}`)
    this.promise = promise
  }
}

export function mustHold(promise: string, holds: boolean, what: () => string): void {
  if (!holds) throw new Broken(promise, what())
}
