/** Text from anybody on one line: what would begin another, move a cursor or beep is a space. */
export const oneLine = (text: string) => text.replaceAll(/\p{Cc}+/gu, ' ')

/** One line of at most `max` characters that every store takes, whatever an error said. */
export const shortLine = (text: string, max: number) => oneLine(text).slice(0, max).toWellFormed()
