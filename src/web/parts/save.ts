/** Hands a text to the person as a file. */
export function save(name: string, parts: string[]): void {
  const url = URL.createObjectURL(new Blob(parts))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
