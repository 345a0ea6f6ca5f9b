import { broken } from '../doors/broken.ts'

/**
 * A promise that failed with nobody to hear of it is a bug of ours: it is told, and this process
 * goes on. Everything that counts is decided in transactions, so nothing is left half done, and
 * those who depend on this process would lose more by its end.
 */
export function outliveRejections(): void {
  process.on('unhandledRejection', (error) => void broken(error))
}
