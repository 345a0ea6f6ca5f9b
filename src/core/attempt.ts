/** What `look` returns; `instead` where it throws: for looks that may find nothing. */
export function attempt<Found, Other>(look: () => Found, instead: Other): Found | Other {
  try {
    return look()
  } catch {
    return instead
  }
}
