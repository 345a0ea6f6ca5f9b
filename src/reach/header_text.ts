/**
 * Text that may stand in an HTTP header: whatever a header cannot carry is percent-encoded. Names
 * and ids are in any script, and a header that is refused takes its whole request with it.
 */
export function headerText(text: string): string {
  // Half of a character has no encoding, and would throw.
  const whole = text.replaceAll(/\p{Surrogate}/gu, '\ufffd')
  return whole.replaceAll(/[^ -~]+/gu, encodeURIComponent).trim()
}

/** JSON that may stand in a header; it reads back as it was. */
export function headerJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(/[^ -~]/g, (each) => {
    return `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** A secret that was read from a file or a variable may have a line end behind it. */
export const bearer = (secret: string) => `Bearer ${headerText(secret.trim())}`
