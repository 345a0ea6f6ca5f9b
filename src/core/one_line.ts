/** Text from anybody on one line: what would begin another, move a cursor or beep is a space. */
export const oneLine = (text: string) => text.replaceAll(/\p{Cc}+/gu, ' ')
